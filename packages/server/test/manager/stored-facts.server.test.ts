import { randomUUID } from "node:crypto";
import type { Head } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { CheckpointRepository } from "../../src/checkpoints/checkpoint-repository.ts";
import { encodeHead } from "../../src/lease/head-codec.ts";
import { headKey, readHead } from "../../src/lease/stored-head.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { ObjectStore } from "../../src/store/store.ts";
import { startTestServer } from "../../../../test/kit/server/test-server.ts";

const DURABLE = { enable_checkpoint: true };

async function replaceSpec(store: ObjectStore, sandboxId: string, spec: Head["spec"]): Promise<void> {
  const cell = await store.readCell(headKey(sandboxId));
  const head = await readHead(store, sandboxId);
  if (head === undefined) throw new Error("no head");
  const changed = encodeHead({ ...head, spec, nonce: randomUUID() });
  expect(await store.swapCell(headKey(sandboxId), cell?.version, changed)).toMatchObject({ outcome: "written" });
}

test.each<[string, Head["spec"]]>([
  ["is empty", {}],
  ["has no environment", { resources: {}, network: "none" }],
  ["has an environment of numbers", { env: { A: 1 }, resources: {}, network: "none" }],
  ["asks for another network", { env: {}, resources: {}, network: "host" }],
  ["has a limit in words", { env: {}, resources: { memoryBytes: "all" }, network: "none" }],
])("a stored spec that %s reaches no backend, and nothing is claimed", async (_what, spec) => {
  const server = await startTestServer();
  const { client, id } = await server.create({ ...DURABLE, labels: { team: "blue" } });
  await client.send({ action: "checkpoint" }).untilClosed();
  const store = await openStore(server.storeFolder ?? "");
  const good = await readHead(store, id);
  await replaceSpec(store, id, spec);
  const refused = server.attach(id);
  expect(await refused.untilClosed()).toEqual([
    "RESTORING",
    "RESTORE_ERROR",
    expect.stringContaining("metadata.json"),
    4000,
  ]);
  expect(await refused.event("error")).toMatchObject({ code: "image_damaged" });
  expect(await readHead(store, id)).toMatchObject({ owner: null, epoch: good?.epoch });
  await replaceSpec(store, id, good?.spec ?? {});
  expect(await server.attach(id).until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
});

test.each(["constructor", "__proto__", "some-other-engine"])(
  "a folder without a head whose image is of the kind %s gets none",
  async (kind) => {
    const server = await startTestServer();
    const store = await openStore(server.storeFolder ?? "");
    const id = randomUUID();
    const checkpoints = new CheckpointRepository(store);
    const state = { kind, members: [], requirements: {} };
    const { name } = await checkpoints.save(id, state, { wallMs: Date.now(), parent: null });
    await checkpoints.writeLatest(id, name);
    const client = server.attach(id);
    expect(await client.untilClosed()).toEqual(["RESTORING", "RESTORE_ERROR", expect.stringContaining(kind), 4000]);
    expect(await client.event("error")).toMatchObject({ code: "image_incompatible" });
    expect(await store.readCell(headKey(id))).toBeUndefined();
  },
);
