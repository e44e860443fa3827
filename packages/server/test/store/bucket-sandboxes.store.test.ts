import { expect, it } from "vitest";
import { openStore } from "../../src/store/open-store.ts";
import { startTestServer } from "../../../../test/kit/server/test-server.ts";
import { FaultyProxy, type SeenRequest } from "../../../../test/kit/faulty-proxy.ts";
import { fakeGcsServer } from "../../../../test/kit/store-servers/fake-gcs-server.ts";
import { minio } from "../../../../test/kit/store-servers/minio.ts";
import { storageTestbench } from "../../../../test/kit/store-servers/storage-testbench.ts";
import { withServer } from "../../../../test/kit/store-servers/with-server.ts";
import { collect } from "./store-contract.ts";

const LEASED = { enable_checkpoint: true, enable_sandbox_handoff: true };

/** Every third answer to a write is lost. */
function losing(): (request: SeenRequest) => "answer-lost" | undefined {
  let count = 0;
  return ({ method }) => (method !== "GET" && method !== "HEAD" && ++count % 3 === 0 ? "answer-lost" : undefined);
}

for (const server of [minio, fakeGcsServer, storageTestbench]) {
  withServer(server, (running) => {
    it("another server on the same bucket resumes a sandbox", async () => {
      const store = await running().newStore();
      const [first, second] = [await startTestServer({ store }), await startTestServer({ store })];
      const { client, id } = await first.create(LEASED);
      await client.run("bash", "echo kept > file").until("EXECUTION_DONE");
      expect((await client.send({ action: "checkpoint" }).untilClosed()).slice(-2)).toEqual(["CHECKPOINTED", 1000]);
      const again = second.attach(id);
      expect(await again.until("RUNNING")).toEqual(["RESTORING", "LOCK_ACQUIRING", "LOCK_ACQUIRED", "RUNNING"]);
      expect(await again.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:kept\n");
      const keys = (await collect((await openStore(store)).list(id))).map(({ key }) => key.slice(id.length + 1));
      expect(keys).toEqual(expect.arrayContaining(["checkpoints/latest", "metadata.json"]));
    });

    it("and does so when every third answer to a write is lost", async () => {
      const proxy = await FaultyProxy.start(running().endpoint);
      try {
        const store = await running().newStore(proxy.endpoint);
        const [first, second] = [await startTestServer({ store }), await startTestServer({ store })];
        proxy.fault = losing();
        let { client, id } = await first.create(LEASED);
        for (const [round, next] of [second, first, second].entries()) {
          await client.run("bash", `echo ${round} >> file`).until("EXECUTION_DONE");
          await client.send({ action: "checkpoint" }).untilClosed();
          client = next.attach(id, "", { deadlineMs: 20_000 });
          await client.until("RUNNING");
        }
        expect(await client.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:0\n1\n2\n");
        proxy.fault = () => undefined;
        await Promise.all([first.drain(), second.drain()]);
      } finally {
        await proxy.stop();
      }
    });
  });
}
