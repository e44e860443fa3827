import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { parseConfig } from "../../src/main/config.ts";
import { type Durability, openDurability } from "../../src/main/durability.ts";
import { SecretSources } from "../../src/secrets/secret-sources.ts";
import { newSnapshot } from "../checkpoints/snapshot-samples.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";

const STATE = { kind: "stub-metadata", members: [], requirements: {} } as const;
const WITH_BYTES = { ...STATE, members: [{ name: "a", path: "/nowhere", sizeBytes: 1 }] };

/** The parts that a server opens at its start. */
async function open(flags: Record<string, string> = {}): Promise<Durability & { readonly data: string }> {
  const data = await temporaryFolder();
  const config = parseConfig({ flags: { dataDirectory: data, ...flags }, env: {}, homeDirectory: data });
  const secrets = new SecretSources({ definitions: {}, environment: {}, warn: () => {} });
  const opened = await openDurability(config, secrets, "http://127.0.0.1:1", pino({ level: "silent" }), {
    onFenced: () => {},
  });
  onTestFinished(() => opened.instances.close());
  return { ...opened, data };
}

async function mirrored(data: string): Promise<string[]> {
  const text = await readFile(join(data, "snapshots.json"), "utf8");
  return (JSON.parse(text) as { snapshots: { id: string }[] }).snapshots.map(({ id }) => id);
}

test("without a configured store a server has a registry, which keeps records and no states", async () => {
  const { durable, data } = await open();
  expect(durable.saves).toBe(false);
  const { snapshot } = await durable.snapshots.save(newSnapshot(), async () => ({ state: STATE }), {
    replaceName: false,
  });
  expect(await mirrored(data)).toEqual([snapshot.id]);
  const refused = durable.snapshots.save(newSnapshot(), async () => ({ state: WITH_BYTES }), { replaceName: false });
  await expect(refused).rejects.toMatchObject({ code: "checkpoint_disabled" });
  expect((await readFile(join(data, "registry", "store.json"), "utf8")).length).toBeGreaterThan(0);
});

test("the snapshots of a directory store are mirrored in the data folder", async () => {
  const { durable, data } = await open({ store: await temporaryFolder() });
  expect(durable.saves).toBe(true);
  const { snapshot } = await durable.snapshots.save(newSnapshot(), async () => ({ state: STATE }), {
    replaceName: false,
  });
  expect(await mirrored(data)).toEqual([snapshot.id]);
});

test("a server that does nothing writes nothing to its registry", async () => {
  const { instances } = await open();
  const { instanceId } = instances;
  const before = await instances.store.readCell(`instances/${instanceId}.json`);
  // Any renewal within this time would be one in a day that nobody needs.
  const record = JSON.parse(Buffer.from(before?.body ?? "").toString("utf8")) as { ttl_ms: number };
  expect(record.ttl_ms).toBeGreaterThan(24 * 3_600_000);
});
