import { createServer } from "node:http";
import { writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { once } from "node:events";
import { expect, onTestFinished, test, vi } from "vitest";
import type { InstanceRecord } from "../../../src/manager/observing/list-instances.ts";
import { absentableStore } from "../../manager/support/absentable-store.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { HttpClient } from "./support.ts";

async function instances(server: TestServer): Promise<InstanceRecord[]> {
  return (await new HttpClient(server).call<{ items: InstanceRecord[] }>("GET", "/v1/instances")).body.items;
}

const PATIENCE = { timeout: 15_000, interval: 50 };

test("each server reports whether it is frozen, and why, also to the others", async () => {
  const one = await startTestServer();
  const lost = absentableStore();
  const two = await startTestServer({
    store: one.storeFolder ?? null,
    // Half of it passes between the freeze and the moment when the others believe in its death.
    leaseTtlMs: 4_000,
    wrapStore: lost.wrapStore,
  });
  const id = two.instances.instanceId;
  const { id: owned } = await new HttpClient(two).create();
  const well = { alive: true, frozen: false, frozen_reason: null };
  expect(await instances(one)).toMatchObject(
    expect.arrayContaining([
      expect.objectContaining({ ...well, here: true }),
      expect.objectContaining({ ...well, id, here: false, owns: [owned] }),
    ]),
  );
  lost.away = true;
  const reason = /^The store has not confirmed a renewal of this server's lease for \d+ s\.$/;
  await vi.waitFor(async () => {
    const seen = (await instances(one)).find((each) => each.id === id);
    expect(seen).toMatchObject({ alive: true, frozen: true, frozen_reason: expect.stringMatching(reason) });
  }, PATIENCE);
  // Without its store it knows of itself.
  expect(await instances(two)).toEqual([
    {
      id,
      url: two.httpUrl,
      here: true,
      alive: true,
      labels: {},
      frozen: true,
      frozen_reason: expect.stringMatching(reason),
      owns: [owned],
      wanted: [],
      handoffs: [],
    },
  ]);
  lost.away = false;
  await vi.waitFor(async () => {
    const [seen] = (await instances(two)).filter(({ here }) => here);
    expect(seen).toMatchObject(well);
  }, PATIENCE);
});

test("a server that does not answer, or whose address belongs to another, has an unknown freeze state", async () => {
  const silent = createServer(() => {});
  await once(silent.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    silent.closeAllConnections();
    silent.close();
  });
  const one = await startTestServer();
  const store = one.storeFolder ?? null;
  const silentUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const two = await startTestServer({ store, advertiseUrl: silentUrl });
  const three = await startTestServer({ store, advertiseUrl: one.httpUrl });
  const told = new Map((await instances(one)).map(({ id, frozen }) => [id, frozen]));
  const ids = [one, two, three].map(({ instances: own }) => told.get(own?.instanceId ?? ""));
  expect(ids).toEqual([false, null, null]);
});

test("a handoff in progress names the server that requested the sandbox", async () => {
  const one = await startTestServer();
  const two = await startTestServer({ store: one.storeFolder ?? null });
  const { id } = await new HttpClient(one).create();
  const held = Promise.withResolvers<void>();
  one.backend.faults.set("snapshot", { until: held.promise });
  const moved = new HttpClient(one).call("POST", `/v1/sandboxes/${id}/handoff`, { to: two.httpUrl });
  const to = two.instances.instanceId;
  const handoffs = async () => (await instances(two)).find(({ here }) => !here);
  await vi.waitFor(async () => {
    expect(await handoffs()).toMatchObject({ wanted: [id], handoffs: [{ sandbox_id: id, to, refused: null }] });
  }, PATIENCE);
  held.resolve();
  expect((await moved).status).toBe(200);
  expect(await handoffs()).toMatchObject({ owns: [], wanted: [], handoffs: [] });
});

test("a store with hundreds of strange servers does not make one call become as many to others", async () => {
  let calls = 0;
  const counting = createServer((_request, response) => {
    calls += 1;
    response.end("{}");
  });
  await once(counting.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void counting.close());
  const one = await startTestServer();
  const url = `http://127.0.0.1:${(counting.address() as AddressInfo).port}`;
  for (let n = 0; n < 300; n++) {
    const record = { format: 1, url, beat: 1, ttl_ms: 15_000, nonce: `${n}` };
    await writeFile(join(one.storeFolder ?? "", "instances", `strange-${n}.json`), JSON.stringify(record));
  }
  const listed = await instances(one);
  expect(listed.filter(({ alive }) => alive)).toHaveLength(301);
  expect(listed.find(({ here }) => here)).toMatchObject({ frozen: false });
  expect(calls).toBe(256);
});
