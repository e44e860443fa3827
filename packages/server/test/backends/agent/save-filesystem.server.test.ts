import { lstat, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { saveFilesystem } from "../../../src/backends/agent/save-filesystem.ts";
import { agentOf, entriesOf, type Node, type Tree } from "./agent-of-tree.ts";

const LIMIT = 64 * 1024 ** 2;
let folder: string;

beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), "sandboxer-save-"))));
afterEach(() => rm(folder, { recursive: true, force: true }));

async function saved(root: Tree, limit = LIMIT): Promise<Map<string, Buffer>> {
  const archive = join(folder, "files.tar");
  await mkdir(join(folder, "base"), { recursive: true });
  await saveFilesystem(agentOf(root).files, join(folder, "base"), archive, limit);
  return new Map((await entriesOf(archive)).map(({ header, content }) => [header.name, content]));
}

function pattern(length: number, seed: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let index = 0; index < length; index++) bytes[index] = (index * 31 + (index >> 10) + seed) & 255;
  return bytes;
}

test("the archive has new, changed and removed files byte by byte, and nothing else", async () => {
  await mkdir(join(folder, "base", "etc"), { recursive: true });
  await writeFile(join(folder, "base", "etc", "same"), "same");
  await writeFile(join(folder, "base", "etc", "gone"), "gone");
  const { mtimeNs, mode, uid, gid } = await lstat(join(folder, "base", "etc", "same"), { bigint: true });
  const asBase = { uid: Number(uid), gid: Number(gid), mode: Number(mode & 0o7777n), modifiedNs: mtimeNs };
  const etc = await lstat(join(folder, "base", "etc"));
  const large = pattern(3 * 1024 * 1024 + 17, 1);
  const small = Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [`f${index}`, { content: pattern(index * 900, index) }]),
  );
  const found = await saved({
    etc: {
      below: { same: { ...asBase, content: Buffer.from("same") }, changed: { content: Buffer.from("new") } },
      uid: etc.uid,
      gid: etc.gid,
      mode: etc.mode & 0o7777,
    },
    proc: { below: { secret: { content: Buffer.from("kernel") } } },
    other: { device: 2n, below: { file: { content: Buffer.from("another filesystem") } } },
    workspace: { below: { large: { content: large }, many: { below: small }, pipe: { kind: "other" } } },
    tmp: { device: 3n, below: { note: { content: Buffer.from("in memory") } } },
  });
  expect([...found.keys()].filter((name) => !name.startsWith("workspace/many/")).toSorted()).toEqual(
    ["etc/.wh.gone", "etc/changed", "tmp/note", "workspace/", "workspace/large"].toSorted(),
  );
  expect(found.get("workspace/large")?.equals(large)).toBe(true);
  const others = Object.entries(small).filter(
    ([name, { content }]) => found.get(`workspace/many/${name}`)?.equals(content) !== true,
  );
  expect(others).toEqual([]);
  expect(found.get("tmp/note")?.toString()).toBe("in memory");
});

test("pieces are requested ahead, up to a limit", async () => {
  const { files, reads } = agentOf({ large: { content: pattern(8 * 1024 * 1024, 3) }, tmp: { below: {} } });
  await saveFilesystem(files, folder, join(folder, "files.tar"), LIMIT);
  expect(reads.most).toBeGreaterThan(3);
  expect(reads.most).toBeLessThanOrEqual(9);
});

test("a file that is shorter than announced is an error, not an unreadable archive", async () => {
  const files = { file: { content: pattern(300_000, 4), missing: 1 } };
  await expect(saved(files)).rejects.toMatchObject({ code: "sandbox_failed" });
});

test("files that are larger than the disk limit are not read", async () => {
  await expect(saved({ file: { content: pattern(1000, 5) } }, 999)).rejects.toMatchObject({ code: "too_large" });
});

test.each([".", "..", "", "a/b", "a\0b"])("an agent that lists %j in a folder is refused", async (name) => {
  await expect(saved({ folder: { below: { [name]: { below: {} } } } })).rejects.toMatchObject({
    code: "sandbox_failed",
  });
});

test("an endless tree is refused", async () => {
  const node: { below: Record<string, Node> } = { below: {} };
  node.below["again"] = node;
  await expect(saved(node.below)).rejects.toMatchObject({ code: "too_large" });
});

test("few listings are in memory at once, however deep the tree is", async () => {
  const depth = 100;
  const empty: Node = { below: {} };
  let tree: Tree = {};
  for (let level = 0; level < depth; level++) tree = { a: { below: tree }, b: empty, c: empty, d: empty };
  const { files, listed } = agentOf(tree);
  await saveFilesystem(files, folder, join(folder, "files.tar"), LIMIT);
  const deepest = listed.indexOf("/a".repeat(depth));
  expect(listed.slice(0, deepest).filter((path) => !path.endsWith("/a")).length).toBeLessThan(12);
});
