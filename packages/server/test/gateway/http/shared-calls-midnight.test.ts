import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { PeerSecret } from "../../../src/gateway/access/peer-secret.ts";
import { SharedCalls } from "../../../src/gateway/http/shared-calls.ts";
import { SharedRecords } from "../../../src/store/shared-records.ts";
import { MemoryStore } from "../../collection/memory-store.ts";

const MINUTE_MS = 60_000;
const MIDNIGHT = Date.parse("2026-05-11T00:00:00Z");

/** Servers of one store, each with a clock of its own. */
function serversAt(...clocks: number[]) {
  const [store, secret] = [new MemoryStore(), new PeerSecret(randomBytes(32))];
  return clocks.map((wallMs, number) => {
    const records = new SharedRecords(store, { wallMs: () => wallMs, monotonicMs: () => wallMs });
    return new SharedCalls({ records, secret, instanceId: () => `server ${number}`, isAlive: async () => true });
  });
}

function sameCall() {
  const { signal } = new AbortController();
  return { identity: "one", requestDigest: "digest", credential: undefined, signal };
}

// At each of these times, one of the servers looks at other days than the other one.
test.each([-120, 0, 120])("one of two servers whose clocks differ executes a call: %i minutes", async (minutes) => {
  const atMs = MIDNIGHT + minutes * MINUTE_MS;
  for (const clocks of [
    [atMs - MINUTE_MS, atMs + MINUTE_MS],
    [atMs + MINUTE_MS, atMs - MINUTE_MS],
  ]) {
    const claims = serversAt(...clocks).map((server) => server.claim(sameCall()));
    const first = await Promise.race(claims);
    if (first.claimed) await first.done("answer");
    const all = await Promise.all(claims);
    expect(all.filter(({ claimed }) => claimed)).toEqual([first]);
    expect(all).toContainEqual({ claimed: false, answer: "answer" });
  }
});

test("a call that failed around midnight can be repeated by a server on either side of it", async () => {
  const servers = serversAt(MIDNIGHT, MIDNIGHT - 150 * MINUTE_MS, MIDNIGHT + 150 * MINUTE_MS);
  for (const server of servers) {
    const claim = await server.claim(sameCall());
    expect(claim.claimed).toBe(true);
    if (claim.claimed) await claim.failed();
  }
});

test("a call around midnight is known to servers on either side of it", async () => {
  const [first, ...others] = serversAt(MIDNIGHT, MIDNIGHT - 150 * MINUTE_MS, MIDNIGHT + 150 * MINUTE_MS);
  const claim = await first?.claim(sameCall());
  if (claim?.claimed === true) await claim.done("answer");
  for (const other of others) expect(await other.claim(sameCall())).toEqual({ claimed: false, answer: "answer" });
});
