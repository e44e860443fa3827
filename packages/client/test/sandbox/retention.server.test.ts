import { expect, test } from "vitest";
import { Sandbox } from "../../src/index.ts";
import { server } from "../support/server.ts";

test("the retention is set at creation and changed later; a pinned snapshot is not deleted", async () => {
  const { client } = await server();
  const box = await Sandbox.create({ client, retention: { checkpoints: { keepLast: 3, hourly: 24 } } });
  expect(box.record.retention).toEqual({ checkpoints: { keepLast: 3, hourly: 24 } });
  expect(await box.update({ retention: null })).toMatchObject({ retention: null });
  const { id } = await box.snapshot();
  expect(await client.snapshots.update(id, { pinned: true })).toMatchObject({ id, pinned: true });
  await expect(client.snapshots.delete(id)).rejects.toMatchObject({ code: "snapshot_pinned" });
  await client.snapshots.update(id, { pinned: false });
  await client.snapshots.delete(id);
});
