import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { StoredDataKeys } from "../../../server/src/checkpoints/keys/stored-data-keys.ts";
import { MasterKey } from "../../../server/src/checkpoints/keys/master-key.ts";
import { DirectoryStore } from "../../../server/src/store/directory/directory-store.ts";
import { runProgram } from "../../src/program.ts";
import { fakeIo } from "../support/fake-io.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rotate-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function secretFile(name: string): MasterKey {
  const bytes = randomBytes(32);
  const path = join(folder, name);
  writeFileSync(path, `${bytes.toString("base64")}\n`);
  chmodSync(path, 0o600);
  return new MasterKey(bytes);
}

async function rotate(...argv: string[]) {
  const config = join(folder, "config.yaml");
  const secrets = ["old", "new"].map((name) => `  ${name}:\n    file: ${join(folder, name)}\n`).join("");
  writeFileSync(config, `encryption_key: new\nencryption_old_keys: old\nsecrets:\n${secrets}`);
  const io = fakeIo({ SANDBOXER_CONFIG: config, SANDBOXER_DATA_DIRECTORY: folder });
  const exitCode = await runProgram(["keys", "rotate-encryption", ...argv], io);
  return { exitCode, out: io.out(), err: io.err() };
}

test("counts, changes nothing in a dry run, and reports keys that could not be opened", async () => {
  const [old, present, lost] = [secretFile("old"), secretFile("new"), new MasterKey(randomBytes(32))];
  const store = join(folder, "store");
  const opened = await DirectoryStore.open(store);
  const keysOf = (name: string, key: MasterKey): StoredDataKeys =>
    new StoredDataKeys(opened, { defaultName: name, oldNames: [], resolve: async () => key });
  const data = await keysOf("old", old).forWriting({}, "sandbox:1", undefined);
  const foreseen = await rotate("--store", store, "--dry-run", "--json");
  expect(JSON.parse(foreseen.out)).toEqual({
    applied: false,
    rewrapped: 1,
    current: 0,
    client_held: 0,
    failed: [],
    records: { sealed: 1, current: 0, of_living_servers: 0, failed: [] },
  });
  expect((await rotate("--store", store)).out).toContain("1 data keys are now encrypted with the current key.");
  expect(JSON.parse((await rotate("--store", store, "--json")).out)).toMatchObject({ rewrapped: 0, current: 1 });
  expect(Buffer.from(await keysOf("new", present).open(data?.id ?? ""))).toEqual(data?.bytes);

  await keysOf("lost", lost).forWriting({}, "sandbox:2", undefined);
  const failed = await rotate("--store", store);
  expect(failed.exitCode).toBe(10);
  expect(failed.out).toContain(`no secret "lost"`);
  expect(failed.out).toContain("Keep the old keys");
});

test("needs a store", async () => {
  expect(await rotate()).toMatchObject({ exitCode: 2, err: expect.stringContaining("--store") as string });
  expect((await rotate("--store", join(folder, "nowhere"))).err).toContain("There is no store");
});
