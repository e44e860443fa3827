import { expect, it } from "vitest";
import { KnownStores } from "../../src/store/known-stores.ts";
import { openDriver } from "../../src/store/open-driver.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { ObjectStore } from "../../src/store/store.ts";
import { eventually } from "../../../../test/kit/eventually.ts";
import { startTestServer } from "../../../../test/kit/server/test-server.ts";
import { FaultyProxy } from "../../../../test/kit/faulty-proxy.ts";
import { fakeGcsServer } from "../../../../test/kit/store-servers/fake-gcs-server.ts";
import { minio } from "../../../../test/kit/store-servers/minio.ts";
import { moto } from "../../../../test/kit/store-servers/moto.ts";
import { storageTestbench } from "../../../../test/kit/store-servers/storage-testbench.ts";
import { withServer } from "../../../../test/kit/store-servers/with-server.ts";
import { bytes, collect } from "./store-contract.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";

const MARKER = "store.json";
const GONE = { code: "store_unavailable", message: expect.stringContaining("store.json is missing") as unknown };
const LEASE_TTL_MS = 3_000;

/** Takes the marker away; gives the way to put it back. */
async function unmark(driver: ObjectStore): Promise<() => Promise<void>> {
  const body = (await driver.readCell(MARKER))?.body ?? new Uint8Array();
  await driver.deleteCell(MARKER);
  return async () => void (await driver.swapCell(MARKER, undefined, body));
}

for (const server of [minio, moto, fakeGcsServer, storageTestbench]) {
  withServer(server, (running) => {
    it("a bucket without its marker is unavailable: nothing is absent, and from then on nothing is written", async () => {
      const address = await running().newStore();
      const [store, driver] = [await openStore(address), await openDriver(address)];
      await store.swapCell("a/metadata.json", undefined, bytes("1"));
      const mark = await unmark(driver);
      await expect(store.readCell("b/metadata.json")).rejects.toMatchObject(GONE);
      await expect(store.swapCell("b/metadata.json", undefined, bytes("1"))).rejects.toMatchObject(GONE);
      await expect(store.write("b/blob", [bytes("content")])).rejects.toMatchObject(GONE);
      await expect(store.readCell("a/metadata.json")).rejects.toMatchObject(GONE);
      expect((await collect(driver.list(""))).map(({ key }) => key)).toEqual(["a/metadata.json"]);
      await mark();
      expect(await store.readCell("b/metadata.json")).toBeUndefined();
      expect((await store.swapCell("b/metadata.json", undefined, bytes("1"))).outcome).toBe("written");
    });

    it("an emptied bucket does not return an empty list, and is not initialized again", async () => {
      const address = await running().newStore();
      const known = new KnownStores(await temporaryFolder());
      const [store, driver] = [await openStore(address, { known }), await openDriver(address)];
      await store.write("a/blob", [bytes("content")]);
      for (const { key } of await collect(driver.list(""))) await driver.delete(key);
      await expect(collect(store.list(""))).rejects.toMatchObject(GONE);
      await expect(collect(store.listFolders(""))).rejects.toMatchObject(GONE);
      await expect(store.stat("a/blob")).rejects.toMatchObject(GONE);
      await expect(openStore(address, { known })).rejects.toMatchObject(GONE);
      await expect(openStore(address, { mustExist: true })).rejects.toMatchObject({ code: "store_unavailable" });
      expect(await collect(driver.list(""))).toEqual([]);
    });

    it("a store that is present needs no further request", async () => {
      const proxy = await FaultyProxy.start(running().endpoint);
      try {
        const store = await openStore(await running().newStore(proxy.endpoint));
        proxy.seen.length = 0;
        const first = await store.swapCell("a/metadata.json", undefined, bytes("1"));
        await store.swapCell("a/metadata.json", first.outcome === "written" ? first.version : "", bytes("2"));
        await store.readCell("a/metadata.json");
        await store.readCell("bells/none.json", { casual: true });
        await collect(store.listCells("a"));
        expect(proxy.seen).toHaveLength(5);
      } finally {
        await proxy.stop();
      }
    });

    it("a server freezes while the marker is missing, and continues with everything", async () => {
      const address = await running().newStore();
      const first = await startTestServer({ store: address, leaseTtlMs: LEASE_TTL_MS });
      const { client, id } = await first.create({ enable_checkpoint: true });
      await client.run("bash", "echo kept > file").until("EXECUTION_DONE");
      const mark = await unmark(await openDriver(address));
      await eventually("it is frozen", () => first.durable.ownership.instances.frozen);
      expect(first.backend.runningCount).toBe(1);
      await mark();
      await eventually("it goes on", () => !first.durable.ownership.instances.frozen);
      expect(await client.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:kept\n");
      expect((await client.send({ action: "checkpoint" }).untilClosed()).slice(-2)).toEqual(["CHECKPOINTED", 1000]);
      expect(await first.durable?.ownership.read(id)).toMatchObject({ epoch: 1, state: "parked" });
    });
  });
}
