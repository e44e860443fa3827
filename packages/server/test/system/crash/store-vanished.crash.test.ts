import { describe, expect, test } from "vitest";
import { HttpClient, type ErrorAnswer } from "../../gateway/http/support.ts";
import { VANISHING } from "../../../../../test/kit/vanishing-folder.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { HANDOFF, storedSandbox } from "./support/pair.ts";
import { contentOf, headOf, save } from "./support/survivor.ts";

const TICK = "i=0; while true; do i=$((i+1)); echo $i; sleep 0.02; done";
/** So long that a server which has much else to do is not taken for dead before the store vanishes. */
const LEASE_TTL_MS = 3_000;
const UNAVAILABLE = { status: 503, body: { error: { code: "store_unavailable", retryable: true } } };

for (const [how, make, skipped] of VANISHING) {
  if (skipped !== undefined) console.log(`skipped: ${skipped}`);
  describe.skipIf(skipped !== undefined)(`a directory store that is ${how} under its servers`, () => {
    test("freezes running sandboxes, answers no 404 and creates nothing, and everything is back with the store", async () => {
      const folder = await make();
      const options = { store: folder.path, leaseTtlMs: LEASE_TTL_MS };
      const [server, peer] = [await startTestServer(options), await startTestServer(options)];
      const http = new HttpClient(server);
      const stored = await storedSandbox(server);
      const { client, id } = await server.create(HANDOFF);
      await client.run("bash", TICK).until("EXECUTION_RUNNING");
      await eventually("it ticks", () => client.output !== "");

      await folder.vanish();
      await eventually("it is frozen", () => server.durable.ownership.instances.frozen);
      const before = client.output;
      const calls = [
        http.call<ErrorAnswer>("GET", `/v1/sandboxes/${stored}`),
        http.call<ErrorAnswer>("POST", `/v1/sandboxes/${stored}/resume`),
        http.call<ErrorAnswer>("DELETE", `/v1/sandboxes/${stored}`),
        http.call<ErrorAnswer>("GET", "/v1/sandboxes"),
        http.call<ErrorAnswer>("GET", "/v1/snapshots"),
        http.call<ErrorAnswer>("POST", `/v1/sandboxes/${id}/checkpoint`),
        http.call<ErrorAnswer>("POST", `/v1/sandboxes/${id}/snapshot`, {}),
        http.call<ErrorAnswer>("POST", "/v1/sandboxes", { enable_checkpoint: true }),
        http.call<ErrorAnswer>("POST", "/v1/sandboxes/acquire", { key: "k", enable_checkpoint: true }),
      ];
      for (const answer of await Promise.all(calls)) expect(answer).toMatchObject(UNAVAILABLE);
      // The others find nothing either, and declare nobody dead.
      await eventually("so is the other server", () => peer.durable.ownership.instances.frozen);
      expect(await folder.strays()).toEqual([]);
      expect([client.closeCode, client.output]).toEqual([undefined, before]);
      expect(server.backend.runningCount).toBe(1);

      await folder.comeBack();
      await eventually("it ticks again", () => client.output.length > before.length + 20);
      const numbers = client.output.trimEnd().split("\n").map(Number);
      expect(numbers).toEqual(numbers.map((_number, index) => index + 1));
      expect((await headOf(server, id)).epoch).toBe(1);
      expect(await http.get(stored)).toMatchObject({ id: stored, state: "stored" });
      const again = peer.attach(stored);
      await again.until("RUNNING");
      expect(await contentOf(again)).toBe("old");
      await save(again);
    });
  });
}
