import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { FileSandboxRecords } from "../../src/records/file-sandbox-records.ts";
import type { OutlivingRecord } from "../../src/records/sandbox-records.ts";

const RECORD: OutlivingRecord = {
  backend: "fake",
  spec: {},
  flags: {
    enable_checkpoint: false,
    enable_idle_timeout_auto_checkpoint: false,
    enable_sandbox_handoff: false,
    on_disconnect: "keep",
  },
  idle_timeout: 300,
  token_hash: null,
  lineage: { sandbox_id: null, checkpoint: null, filesystem_snapshot: null },
  createdAt: "2026-01-01T00:00:00.000Z",
  stopped_at: null,
  holder: null,
};

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "sandboxer-records-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

test("processes that write at once lose none of their records", async () => {
  const folder = await temporaryFolder();
  const module = new URL("../../src/records/file-sandbox-records.ts", import.meta.url).href;
  const script = `
    const { FileSandboxRecords } = await import(${JSON.stringify(module)});
    const records = new FileSandboxRecords(process.argv[1]);
    for (let i = 0; i < 10; i++) await records.put(process.argv[2] + i, ${JSON.stringify(RECORD)});`;
  const run = (name: string) =>
    promisify(execFile)(process.execPath, ["--input-type=module", "-e", script, folder, name]);
  await Promise.all(["a", "b", "c"].map(run));
  expect((await new FileSandboxRecords(folder).list()).size).toBe(30);
});

test("what is not known in the file stays; what cannot be read is refused and not overwritten", async () => {
  const folder = await temporaryFolder();
  const path = join(folder, "sandboxes.json");
  const later = { ...RECORD, colour: "blue" };
  await writeFile(path, JSON.stringify({ format: 1, extra: true, sandboxes: { one: later } }));
  const records = new FileSandboxRecords(folder);
  await records.put("two", RECORD);
  await records.remove("three");
  expect(JSON.parse(await readFile(path, "utf8"))).toMatchObject({ extra: true, sandboxes: { one: later } });
  await writeFile(path, '{"format":99}');
  await expect(records.put("x", RECORD)).rejects.toMatchObject({ code: "store_unavailable" });
  expect(await readFile(path, "utf8")).toBe('{"format":99}');
});

test("of several that swap what they have read one succeeds, and what is gone is not brought back", async () => {
  const records = new FileSandboxRecords(await temporaryFolder());
  await records.put("one", RECORD);
  const read = await records.get("one");
  if (read === undefined) throw new Error("it was put");
  const claims = ["a", "b", "c"].map((host) => ({ ...read, holder: { url: null, host, pid: 1 } }));
  const outcomes = await Promise.all(claims.map((claim) => records.swap("one", read, claim)));
  expect(outcomes.filter(Boolean)).toHaveLength(1);
  const won = claims[outcomes.indexOf(true)] ?? read;
  expect(await records.get("one")).toEqual(won);
  expect(await records.swap("one", won, read)).toBe(true);
  await records.remove("one");
  expect(await records.swap("one", read, won)).toBe(false);
  expect((await records.list()).size).toBe(0);
});
