import { execFile } from "node:child_process";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { KeyFile, keyFilePath } from "../../../src/gateway/access/key-file.ts";
import { digest } from "../../../src/gateway/access/key-text.ts";
import { FakeClock } from "../../lease/fake-clock.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";

const MODULE = new URL("../../../src/gateway/access/key-file.ts", import.meta.url).href;

test("a new key is stored as a hash, in a file that only its owner reads", async () => {
  const folder = join(await temporaryFolder(), "not", "there", "yet");
  const { text, record } = await new KeyFile(folder, new FakeClock()).create({ name: "ci", scope: "use" });
  const [, id, secret = ""] = /^sbx_([0-9a-f]{12})_([0-9a-f]{64})$/.exec(text) ?? [];
  expect(record.id).toBe(id);
  const stored = readFileSync(keyFilePath(folder), "utf8");
  expect(stored).not.toContain(secret);
  expect(JSON.parse(stored)).toEqual({
    format: 1,
    keys: [
      {
        id,
        name: "ci",
        scope: "use",
        sha256: digest(secret).toString("hex"),
        created_at: "2026-09-21T14:13:20.000Z",
        expires_at: null,
        revoked_at: null,
      },
    ],
  });
  expect(statSync(keyFilePath(folder)).mode & 0o777).toBe(0o600);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
});

test("processes that create keys at once lose none", async () => {
  const folder = await temporaryFolder();
  const code = `
    const { KeyFile } = await import(${JSON.stringify(MODULE)});
    const file = new KeyFile(${JSON.stringify(folder)});
    for (let i = 0; i < 5; i++) await file.create({ name: process.argv[1] + i, scope: "read" });`;
  const run = promisify(execFile);
  const names = ["a", "b", "c"];
  await Promise.all(names.map((name) => run(process.execPath, ["--input-type=module", "-e", code, name])));
  const expected = names.flatMap((name) => [0, 1, 2, 3, 4].map((number) => `${name}${number}`));
  expect(
    new KeyFile(folder)
      .list()
      .map(({ name }) => name)
      .toSorted(),
  ).toEqual(expected);
  expect(readdirSync(folder).filter((name) => name.endsWith(".tmp"))).toEqual([]);
});

describe("revoking", () => {
  test("by a unique prefix; the record stays, and a second time changes nothing", async () => {
    const clock = new FakeClock();
    const file = new KeyFile(await temporaryFolder(), clock);
    const { record } = await file.create({ name: "ci", scope: "use" });
    const first = await file.revoke(record.id.slice(0, 4));
    expect(first).toEqual({ ...record, revoked_at: "2026-09-21T14:13:20.000Z" });
    clock.advance(60_000);
    expect(await file.revoke(record.id)).toEqual(first);
    expect(file.list()).toEqual([first]);
  });

  test("a text that fits several keys, or none, changes nothing and names the keys that fit", async () => {
    const folder = await temporaryFolder();
    const record = (id: string) => ({
      id,
      name: `name-${id}`,
      scope: "use",
      sha256: "0".repeat(64),
      created_at: "2026-01-01T00:00:00.000Z",
      expires_at: null,
      revoked_at: null,
    });
    const before = JSON.stringify({ format: 1, keys: [record("aa0000000000"), record("aa1111111111")] });
    writeFileSync(keyFilePath(folder), before);
    const file = new KeyFile(folder);
    await expect(file.revoke("aa")).rejects.toMatchObject({
      code: "bad_request",
      message: expect.stringMatching(/aa0000000000 \(name-aa0000000000\), aa1111111111/),
    });
    for (const none of ["b", "", "aa00000000001"]) {
      await expect(file.revoke(none)).rejects.toMatchObject({ code: "key_not_found" });
    }
    expect(readFileSync(keyFilePath(folder), "utf8")).toBe(before);
  });

  test("an error does not repeat a key that was pasted instead of its id", async () => {
    const file = new KeyFile(await temporaryFolder());
    const { text } = await file.create({ name: "ci", scope: "use" });
    await expect(file.revoke(text)).rejects.not.toThrow(text.slice(-10));
  });
});

test("fields of a later version are kept", async () => {
  const folder = await temporaryFolder();
  const file = new KeyFile(folder);
  const { record } = await file.create({ name: "ci", scope: "use" });
  const later = { format: 1, owner: "later", keys: [{ ...record, color: "red" }] };
  writeFileSync(keyFilePath(folder), JSON.stringify(later));
  await file.create({ name: "second", scope: "read" });
  expect(JSON.parse(readFileSync(keyFilePath(folder), "utf8"))).toMatchObject({
    owner: "later",
    keys: [{ color: "red" }, { name: "second" }],
  });
});

test.each([
  ["{", /not JSON/],
  ['{"format":2,"keys":[]}', /format is 2, but this program knows only 1/],
  ['{"format":1,"keys":[{"id":"../x"}]}', /keys\[0\]/],
  ["[]", /cannot be read/],
])("a file with %s is refused and left as it is", async (text, problem) => {
  const folder = await temporaryFolder();
  writeFileSync(keyFilePath(folder), text);
  const file = new KeyFile(folder);
  expect(() => file.list()).toThrow(problem);
  await expect(file.create({ name: "ci", scope: "use" })).rejects.toThrow(problem);
  expect(readFileSync(keyFilePath(folder), "utf8")).toBe(text);
});

test.each(["", " ", " ci", "ci ", "a\nb", "\u001b[2J", "x".repeat(65)])("%j is not a name", async (name) => {
  const file = new KeyFile(await temporaryFolder());
  await expect(file.create({ name, scope: "use" })).rejects.toMatchObject({ code: "bad_request" });
});

test("a key expires; never further away than dates go", async () => {
  const file = new KeyFile(await temporaryFolder(), new FakeClock());
  const { record } = await file.create({ name: "ci", scope: "use", expiresInMs: 86_400_000 });
  expect(record.expires_at).toBe("2026-09-22T14:13:20.000Z");
  await expect(file.create({ name: "x", scope: "use", expiresInMs: 1e15 })).rejects.toThrow(/that far/);
});
