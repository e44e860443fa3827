import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { CheckpointRepository } from "../../src/checkpoints/checkpoint-repository.ts";
import { collectGarbage } from "../../src/collection/collect-garbage.ts";
import { openStore } from "../../src/store/open-store.ts";
import { systemClock } from "../../src/support/clock.ts";
import { savedState } from "../checkpoints/saved-states.ts";
import { newSandbox } from "../lease/samples.ts";
import { at, instance } from "../lease/test-instances.ts";
import { fakeGcsServer } from "../../../../test/kit/store-servers/fake-gcs-server.ts";
import { minio } from "../../../../test/kit/store-servers/minio.ts";
import { withServer } from "../../../../test/kit/store-servers/with-server.ts";
import { collect } from "./store-contract.ts";

for (const server of [minio, fakeGcsServer]) {
  withServer(server, (running) => {
    it("unreferenced data is collected from a bucket", async () => {
      const store = await openStore(await running().newStore());
      const [dead, living] = [await instance(store), await instance(store)];
      const checkpoints = new CheckpointRepository(store);
      const state = await savedState({ memory: 5000 });
      const save = async (id: string) => await checkpoints.save(id, state, { wallMs: 1, parent: null });
      const [id, destroyed] = [randomUUID(), randomUUID()];
      await dead.create(id, newSandbox());
      const published = await save(id);
      await dead.publish(at(id), published);
      const unpublished = await save(id);
      await living.create(destroyed, newSandbox());
      const ofDestroyed = await save(destroyed);
      await living.destroy(destroyed);
      await living.instances.markDead(dead.name);

      const context = { store, clock: systemClock, apply: true, keep: {} };
      const { garbage } = await collectGarbage(context);
      expect(garbage.map(({ kind }) => kind).toSorted()).toEqual(["destroyed", "unpublished"]);
      const sizes = [unpublished.size_bytes, ofDestroyed.size_bytes].toSorted((a, b) => a - b);
      expect(garbage.map(({ sizeBytes }) => sizeBytes).toSorted((a, b) => a - b)).toEqual(sizes);
      expect(await collect(store.list(`${destroyed}/checkpoints`))).toEqual([]);
      expect(await living.claim(id)).toMatchObject({ epoch: 3, checkpoint: published });
      await checkpoints.open(id, published.name);
      expect((await collectGarbage(context)).garbage.map(({ kind }) => kind)).toEqual(["server-record"]);
    });
  });
}
