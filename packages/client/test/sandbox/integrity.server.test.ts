import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Sandbox } from "../../src/index.ts";
import { server } from "../support/server.ts";

test("a snapshot, a sandbox and the whole store are checked, and damage is reported", async () => {
  const { client, store } = await server();
  const sandbox = await Sandbox.create({ client });
  const { id } = await sandbox.snapshot();
  await sandbox.checkpoint({ leaveRunning: true });
  expect(await client.snapshots.verify(id)).toMatchObject({ ok: true, images: { whole: 1 }, unnamedPacks: null });
  expect(await sandbox.verify()).toMatchObject({ ok: true, images: { whole: 1 } });
  const phases = new Set<string>();
  const whole = await client.scrub({ rateMb: null, onProgress: ({ kind }) => phases.add(kind) });
  expect([whole.ok, whole.images.whole, [...phases]]).toEqual([true, 2, ["scrub"]]);

  const path = join(store, "snapshots", id, "image.img");
  const bytes = readFileSync(path);
  bytes[bytes.byteLength >> 1] = (bytes[bytes.byteLength >> 1] ?? 0) ^ 1;
  writeFileSync(path, bytes);
  const report = await client.scrub();
  expect(report).toMatchObject({ ok: false, problems: [{ snapshotId: id, sandboxId: sandbox.id, current: false }] });
  expect((await client.scrubStatus()).last).toEqual(report);
  expect((await client.snapshots.get(id)).state).toBe("damaged");
  await client.stopScrub();
});
