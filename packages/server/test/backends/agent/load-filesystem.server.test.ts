import { Buffer } from "node:buffer";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { AgentFiles } from "../../../src/backends/agent/agent-files.ts";
import { loadFilesystem } from "../../../src/backends/agent/load-filesystem.ts";
import { saveFilesystem } from "../../../src/backends/agent/save-filesystem.ts";
import { tarEnd, tarHeader, tarPadding } from "../../../src/support/tar-header.ts";
import { agentOf } from "./agent-of-tree.ts";

const LIMIT = 64 * 1024 ** 2;
let folder: string;

beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), "sandboxer-load-"))));
afterEach(() => rm(folder, { recursive: true, force: true }));

/** The calls to the sandbox that the archive is loaded into. */
async function loaded(archive: string): Promise<readonly string[]> {
  const done: string[] = [];
  const files = {
    remove: async (path: string) => void done.push(`remove ${path}`),
    makeFolder: async (path: string) => void done.push(`folder ${path}`),
    makeSymlink: async (target: string, path: string) => void done.push(`link ${path} to ${target}`),
    write: async (path: string, content: AsyncIterable<Uint8Array>) => {
      done.push(`write ${path}: ${Buffer.concat(await Array.fromAsync(content)).toString()}`);
    },
    set: async () => {},
  };
  await loadFilesystem(files as unknown as AgentFiles, archive);
  return done;
}

async function archiveWith(kind: "file" | "folder", name: string, content = ""): Promise<string> {
  const path = join(folder, "made.tar");
  const entry = { kind, mode: 0o644, uid: 0, gid: 0, sizeBytes: content.length, modifiedMs: 0 };
  const head = tarHeader({ ...entry, name: Buffer.from(name) });
  await writeFile(path, Buffer.concat([head, Buffer.from(content), tarPadding(content.length), tarEnd()]));
  return path;
}

test("files of the user that are named like removals are kept as files", async () => {
  await mkdir(join(folder, "base"));
  const below = {
    ".wh.": { content: Buffer.from("a") },
    ".wh.x": { content: Buffer.from("") },
    ".wh.folder": { below: { plain: { content: Buffer.from("b") } } },
    ".wh.link": { kind: "symlink", linkTarget: "t\xff" },
  } as const;
  const archive = join(folder, "files.tar");
  const { files } = agentOf({ "w\xe9rk": { below } });
  await saveFilesystem(files, join(folder, "base"), archive, LIMIT);
  expect(await loaded(archive)).toEqual([
    "folder /w\xe9rk",
    "write /w\xe9rk/.wh.: a",
    "write /w\xe9rk/.wh.x: ",
    "folder /w\xe9rk/.wh.folder",
    "remove /w\xe9rk/.wh.link",
    "link /w\xe9rk/.wh.link to t\xff",
    "write /w\xe9rk/.wh.folder/plain: b",
  ]);
});

test("a removal is applied", async () => {
  expect(await loaded(await archiveWith("file", "etc/.wh.gone"))).toEqual(["remove /etc/gone"]);
  expect(await loaded(await archiveWith("file", "etc/.wh..wh.gone"))).toEqual(["remove /etc/.wh.gone"]);
});

test.each<["file" | "folder", string, string?]>([
  ["file", "etc/.wh."],
  ["file", "etc/.wh.."],
  ["file", "etc/.wh..."],
  ["file", ".wh."],
  ["folder", "etc/.wh.folder/"],
  ["file", "etc/.wh.full", "content"],
])("a %s named %s with the content %j is no removal, and nothing is removed", async (kind, name, content) => {
  const archive = await archiveWith(kind, name, content);
  await expect(loaded(archive)).rejects.toMatchObject({ code: "image_damaged" });
});
