import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { FileKeyClaims } from "../../src/records/file-key-claims.ts";

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "sandboxer-claims-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const isThere = async (): Promise<boolean> => true;

test("of several servers that take a key one has it, until its sandbox is gone", async () => {
  const folder = await temporaryFolder();
  const servers = ["a", "b", "c"].map((id) => ({ id, claims: new FileKeyClaims(folder) }));
  const taken = await Promise.all(servers.map(({ id, claims }) => claims.take("k", id, isThere)));
  expect(taken.filter(Boolean)).toHaveLength(1);
  const claims = new FileKeyClaims(folder);
  const winner = servers[taken.indexOf(true)]?.id ?? "";
  expect(await claims.get("k")).toBe(winner);
  expect(await claims.take("k", winner, isThere)).toBe(true);
  expect(await claims.take("k", "d", async (id) => id !== winner)).toBe(true);
  expect(await claims.get("k")).toBe("d");
});

test("the oldest of many make room", async () => {
  const folder = await temporaryFolder();
  const claims = new FileKeyClaims(folder);
  await claims.take("__proto__", "first", isThere);
  expect(await claims.get("__proto__")).toBe("first");
  // Each that is taken writes all of them: most are put there at once.
  const path = join(folder, "acquire-keys.json");
  const { claims: taken, ...others } = JSON.parse(await readFile(path, "utf8")) as { claims: unknown[] };
  const more = Array.from({ length: 997 }, (_, number) => [`k${number}`, "s"]);
  await writeFile(path, JSON.stringify({ ...others, claims: [...taken, ...more] }));
  for (const number of [997, 998]) await claims.take(`k${number}`, "s", isThere);
  expect(await claims.get("__proto__")).toBe("first");
  await claims.take("k999", "s", isThere);
  expect(await claims.get("__proto__")).toBeUndefined();
  expect(await claims.get("k0")).toBe("s");
  const { claims: kept } = JSON.parse(await readFile(path, "utf8")) as { claims: unknown[] };
  expect(kept).toHaveLength(1000);
});
