import { randomBytes } from "node:crypto";
import { expect, it } from "vitest";
import { rotateDataKeys } from "../../src/checkpoints/keys/rotate-data-keys.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { ObjectStore } from "../../src/store/store.ts";
import { newId, newKey, serverKeys, serverOn } from "../checkpoints/keys/key-lab.ts";
import { fakeGcsServer } from "../../../../test/kit/store-servers/fake-gcs-server.ts";
import { minio } from "../../../../test/kit/store-servers/minio.ts";
import { storageTestbench } from "../../../../test/kit/store-servers/storage-testbench.ts";
import { withServer } from "../../../../test/kit/store-servers/with-server.ts";
import { collect } from "./store-contract.ts";

const SECRET = "a sentence that nobody else may read";
const MEMBERS = {
  text: Buffer.from(`${SECRET}\n`.repeat(20_000)),
  small: Buffer.from(SECRET),
  random: randomBytes(400_000),
};

/** Every blob of a store with its bytes. */
async function blobsOf(store: ObjectStore): Promise<readonly (readonly [key: string, bytes: Buffer])[]> {
  const listed = await collect(store.list(""));
  return await Promise.all(
    listed.map(async ({ key }) => [key, Buffer.concat(await collect(store.read(key)))] as const),
  );
}

/** The objects in which a part of a checkpoint is readable. */
async function readable(store: ObjectStore): Promise<string[]> {
  const piece = MEMBERS.random.subarray(300_000, 300_032);
  const found = (await blobsOf(store)).filter(([, bytes]) => bytes.includes(SECRET) || bytes.includes(piece));
  return found.map(([key]) => key);
}

for (const server of [minio, fakeGcsServer, storageTestbench]) {
  withServer(server, (running) => {
    it("a checkpoint is encrypted, readable with the rotated key, and unreadable once its key is removed", async () => {
      const store = await openStore(await running().newStore());
      const keys = new Map(["old", "new"].map((name) => [name, newKey()]));
      const only = (name: string) =>
        serverOn(store, serverKeys(new Map([...keys].filter(([key]) => key === name)), name));
      const id = newId();
      const first = await only("old").save(id, MEMBERS);
      const changed = { ...MEMBERS, small: Buffer.from("changed") };
      const second = await only("old").save(id, changed, { parent: first.name });
      expect(await readable(store)).toEqual([]);
      expect(await only("old").load(id, second.name)).toEqual(changed);

      const rotated = await rotateDataKeys(store, serverKeys(keys, "new", ["old"]), { apply: true });
      expect(rotated).toEqual({ rewrapped: 1, current: 0, client_held: 0, failed: [] });
      expect(await only("new").load(id, first.name)).toEqual(MEMBERS);
      expect(await only("new").load(id, second.name)).toEqual(changed);
      await expect(only("old").load(id, first.name)).rejects.toMatchObject({ code: "key_unavailable" });
      const third = await only("new").save(id, MEMBERS, { parent: second.name });
      const kept = await blobsOf(store);
      expect(kept.filter(([key]) => key.includes(keys.get("old")?.fingerprint ?? "?"))).toEqual([]);
      expect(kept.filter(([key]) => key.includes(keys.get("new")?.fingerprint ?? "?"))).toHaveLength(1);

      const putBack = async (): Promise<void> => {
        for (const [key, bytes] of kept) if (!key.startsWith("data-keys/")) await store.write(key, [bytes]);
      };
      await putBack();
      expect(await only("new").load(id, third.name)).toEqual(MEMBERS);
      await only("new").checkpoints.removeAll(id);
      expect(await collect(store.list("data-keys"))).toEqual([]);
      // Without the data key everything else is useless, even with the master keys.
      await putBack();
      for (const { name } of [first, second, third]) {
        await expect(only("new").load(id, name)).rejects.toMatchObject({ code: "image_damaged" });
      }
      // The search finds the text if nothing is encrypted.
      await serverOn(store).save(newId(), MEMBERS);
      expect(await readable(store)).not.toEqual([]);
    });
  });
}
