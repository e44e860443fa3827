import { Buffer } from "node:buffer";
import { lstat, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { saveFilesystem } from "../../../src/backends/agent/save-filesystem.ts";
import { agentOf, entriesOf, type Node, type Tree } from "./agent-of-tree.ts";

const LIMIT = 64 * 1024 ** 2;
const FILE: Node = { content: Buffer.from("new") };
const LINK: Node = { kind: "symlink", linkTarget: "elsewhere" };
const NEW = { file: FILE, link: LINK, folder: { below: { inner: FILE } }, pipe: { kind: "other" } } as const;
let folder: string;
let base: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sandboxer-kinds-"));
  base = join(folder, "base");
  await mkdir(base);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function savedNames(root: Tree): Promise<readonly string[]> {
  const archive = join(folder, "files.tar");
  await saveFilesystem(agentOf({ tmp: { below: {} }, ...root }).files, base, archive, LIMIT);
  return (await entriesOf(archive)).map(({ header }) => header.name).filter((name) => name !== "tmp/");
}

test.each<[string, keyof typeof NEW, readonly string[]]>([
  ["link", "file", [".wh.link", "link"]],
  ["link", "folder", [".wh.link", "link/", "link/inner"]],
  ["folder", "file", [".wh.folder", "folder"]],
  ["folder", "link", [".wh.folder", "folder"]],
  ["file", "folder", [".wh.file", "file/", "file/inner"]],
  ["file", "link", [".wh.file", "file"]],
  ["file", "pipe", [".wh.file"]],
  ["file", "file", ["file"]],
])("what was a %s and is now a %s is saved as %j", async (name, kind, expected) => {
  await mkdir(join(base, "folder"));
  await writeFile(join(base, "folder", "old"), "old");
  await writeFile(join(base, "file"), "old");
  await symlink("folder", join(base, "link"));
  const rest = { folder: { below: { old: FILE } }, file: FILE, link: { ...LINK, linkTarget: "folder" } };
  const names = await savedNames({ ...rest, [name]: NEW[kind] });
  expect(names.filter((found) => found.split("/")[0]?.replace(".wh.", "") === name)).toEqual(expected);
});

test("a folder in place of a link reveals nothing of the link's target on the host", async () => {
  const host = join(folder, "host");
  await mkdir(join(host, "deep"), { recursive: true });
  await writeFile(join(host, "secret-name"), "");
  await writeFile(join(host, "deep", "another-name"), "");
  await symlink(host, join(base, "etc"));
  const names = await savedNames({ etc: { below: { deep: { below: {} } } } });
  expect(names).toEqual([".wh.etc", "etc/", "etc/deep/"]);
});

test("names that are not UTF-8 are saved, and found again in the root filesystem", async () => {
  const same = Buffer.concat([Buffer.from(`${base}/`), Buffer.from("s\xe9me", "latin1")]);
  await writeFile(same, "same");
  await writeFile(Buffer.concat([Buffer.from(`${base}/`), Buffer.from("g\xf6ne", "latin1")]), "");
  const { mtimeNs, mode, uid, gid } = await lstat(same, { bigint: true });
  const asBase = { uid: Number(uid), gid: Number(gid), mode: Number(mode & 0o7777n), modifiedNs: mtimeNs };
  const names = await savedNames({
    "s\xe9me": { ...asBase, content: Buffer.from("same") },
    "n\xffw": { below: { "\x80": FILE } },
  });
  expect(names.toSorted()).toEqual([".wh.g\xf6ne", "n\xffw/", "n\xffw/\x80"]);
});
