import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runProgram } from "../../src/program.ts";
import { fakeIo } from "../support/fake-io.ts";

const KEY = /^sbx_([0-9a-f]{12})_[0-9a-f]{64}\n$/;
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "keys-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

async function keys(...argv: string[]) {
  // A server that shall listen to others waits for its first key.
  const io = fakeIo({ SANDBOXER_HOST: "0.0.0.0", SANDBOXER_DATA_DIRECTORY: folder });
  const exitCode = await runProgram(["keys", ...argv], io);
  return { exitCode, out: io.out(), err: io.err() };
}

test("only the new key is on stdout; notes about it are on stderr", async () => {
  const { exitCode, out, err } = await keys("create", "--name", "ci", "--scope", "use", "--expires", "30d");
  expect(exitCode).toBe(0);
  const [, id = "?"] = KEY.exec(out) ?? [];
  expect(err).toContain(`Key ${id} (ci) has the scope use and expires at 20`);
  expect(err).not.toContain(out.trim());
});

test("the list has every key with its status, and never the keys themselves", async () => {
  expect(await keys("list")).toMatchObject({ exitCode: 0, out: "No keys found.\n" });
  const first = await keys("create", "--name", "first", "--scope", "read");
  const second = await keys("create", "--name", "second", "--scope", "admin", "--expires", "1d");
  const id = KEY.exec(first.out)?.[1] ?? "?";
  expect(await keys("revoke", id.slice(0, 11))).toMatchObject({ exitCode: 0, out: `${id}\n` });
  const { out } = await keys("list");
  const today = new Date().toISOString().slice(0, 10);
  expect(out.split("\n")[0]).toMatch(/^id +name +scope +status +created +expires$/);
  expect(out).toMatch(new RegExp(`\n${id}  first   read   revoked  ${today}  never\n`));
  expect(out).toMatch(/ {2}second {2}admin {2}active {3}/);
  for (const { out: key } of [first, second]) expect(out).not.toContain(key.trim().slice(17));
});

test("--json prints the same for programs, without hashes", async () => {
  const created = JSON.parse((await keys("create", "--name", "ci", "--scope", "use", "--json")).out) as {
    key: string;
    id: string;
  };
  expect(created).toMatchObject({ name: "ci", scope: "use", status: "active", expires_at: null, revoked_at: null });
  expect(`${created.key}\n`).toMatch(KEY);
  const { key: _key, ...record } = created;
  const listed = await keys("list", "--json");
  expect(JSON.parse(listed.out)).toEqual({ keys: [record] });
  expect(listed.out).not.toContain("sha256");
  const revoked = JSON.parse((await keys("revoke", created.id, "--json")).out) as object;
  expect(revoked).toMatchObject({ id: created.id, status: "revoked", revoked_at: expect.any(String) });
});

test.each([
  [["create", "--scope", "use"], 2],
  [["create", "--name", "ci"], 2],
  [["create", "--name", "ci", "--scope", "root"], 2],
  [["create", "--name", "ci", "--scope", "use", "--expires", "soon"], 2],
  [["revoke"], 2],
  [["revoke", "0"], 4],
])("%j ends with %d and makes no key", async (argv, exitCode) => {
  expect(await keys(...argv)).toMatchObject({ exitCode, out: expect.not.stringMatching(KEY) });
  expect((await keys("list")).out).toBe("No keys found.\n");
});

test("a key can name the secret that encrypts the data of its sandboxes", async () => {
  await keys("create", "--name", "plain", "--scope", "use");
  const made = await keys("create", "--name", "a", "--scope", "use", "--encryption-key", "tenant-a", "--json");
  expect(JSON.parse(made.out)).toMatchObject({ name: "a", encryption_key: "tenant-a" });
  const { out } = await keys("list");
  expect(out.split("\n")[0]).toMatch(/expires +encryption key$/);
  expect(out).toMatch(/never +tenant-a\n/);
  const refused = await keys("create", "--name", "b", "--scope", "use", "--encryption-key", "no name");
  expect(refused).toMatchObject({ exitCode: 2 });
});
