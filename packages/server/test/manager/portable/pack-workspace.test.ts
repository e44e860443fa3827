import { execFile } from "node:child_process";
import { lstat, mkdtemp, readdir, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { SandboxerError } from "@sandboxer/protocol";
import { expect, onTestFinished, test } from "vitest";
import type { FileEntry, SandboxFiles } from "../../../src/backends/backend.ts";
import { packWorkspace, type PackSource } from "../../../src/manager/portable/pack-workspace.ts";
import { tarHeader } from "../../../src/manager/portable/tar-header.ts";
import type { WorkspaceTally } from "../../../src/manager/portable/workspace-archive.ts";

const execFileAsync = promisify(execFile);
const SECONDS = 1_234_567_890;

/** Files with names of any bytes, each character one of them. */
function filesOf(tree: Readonly<Record<string, Partial<FileEntry> & { readonly content?: string }>>): SandboxFiles {
  const entry = (path: string): FileEntry => ({
    name: path.split("/").at(-1) ?? "",
    kind: "file",
    mode: 0o644,
    uid: 1000,
    gid: 1000,
    sizeBytes: tree[path]?.content?.length ?? 0,
    modifiedMs: SECONDS * 1000 + 500,
    linkTarget: undefined,
    ...tree[path],
  });
  return {
    stat: async (path: string) => entry(path),
    list: async (path: string) =>
      Object.keys(tree)
        .filter((each) => each.slice(0, each.lastIndexOf("/")) === path)
        .map(entry),
    async *read(path: string) {
      const { content } = tree[path] ?? {};
      if (content === undefined) throw new SandboxerError("file_not_found", `${path} is gone.`);
      yield Buffer.from(content, "latin1");
    },
  } as unknown as SandboxFiles;
}

async function pack(files: SandboxFiles, more: Partial<PackSource> = {}): Promise<[Buffer, WorkspaceTally]> {
  const tally = { files: 0, folders: 0, links: 0, bytes: 0, leftOut: 0 };
  const source: PackSource = { files, names: "latin1", folder: "/w", maxBytes: 1 << 20, ...more };
  return [Buffer.concat(await Array.fromAsync(packWorkspace(source, tally))), tally];
}

async function untar(archive: Buffer): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "sandboxer-pack-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "archive.tar"), archive);
  await execFileAsync("tar", ["-x", "-p", "-f", "archive.tar"], { cwd: folder });
  await rm(join(folder, "archive.tar"));
  return folder;
}

test("the system's own tar reads names and links of any bytes and lengths, modes and times", async () => {
  const raw = "bytes \xff\xfe\x80\xc3\x28";
  const long = "d".repeat(200);
  const target = `\xff${"t".repeat(150)}`;
  const [archive, tally] = await pack(
    filesOf({
      "/w": { kind: "folder", mode: 0o755 },
      [`/w/${raw}`]: { content: "raw", mode: 0o640 },
      "/w/-x\ny": { content: "\n" },
      [`/w/${long}`]: { kind: "folder", mode: 0o1777 },
      [`/w/${long}/${long}`]: { content: "deep" },
      [`/w/${long}/link`]: { kind: "symlink", linkTarget: target },
      "/w/socket": { kind: "other" },
      "/w/gone": { sizeBytes: 4 },
    }),
  );
  expect(tally).toEqual({ files: 3, folders: 1, links: 1, bytes: 8, leftOut: 1 });
  const folder = await untar(archive);
  const bytes = Buffer.from(folder);
  const names = (await readdir(bytes, { encoding: "buffer" })).map((name) => name.toString("latin1"));
  expect(names.toSorted()).toEqual(["-x\ny", raw, long].toSorted());
  const at = Buffer.concat([bytes, Buffer.from(`/${raw}`, "latin1")]);
  expect(await readFile(at, "utf8")).toBe("raw");
  const { mode, mtimeMs } = await lstat(at);
  expect([mode & 0o7777, mtimeMs]).toEqual([0o640, SECONDS * 1000]);
  expect((await lstat(join(folder, long))).mode & 0o7777).toBe(0o1777);
  expect(await readFile(join(folder, long, long), "utf8")).toBe("deep");
  expect(await readlink(join(folder, long, "link"), "latin1")).toBe(target);
});

test("a file that has shrunk is filled up, one that has grown is cut", async () => {
  const folder = await untar(
    (
      await pack(
        filesOf({
          "/w": { kind: "folder", mode: 0o755 },
          "/w/shrunk": { content: "ab", sizeBytes: 5 },
          "/w/grown": { content: "abcdef", sizeBytes: 3 },
        }),
      )
    )[0],
  );
  expect(await readFile(join(folder, "shrunk"), "latin1")).toBe("ab\0\0\0");
  expect(await readFile(join(folder, "grown"), "latin1")).toBe("abc");
});

test("what is larger than the limit is not packed", async () => {
  const files = filesOf({ "/w": { kind: "folder" }, "/w/sparse": { content: "", sizeBytes: 2 ** 40 } });
  await expect(pack(files)).rejects.toMatchObject({ code: "too_large" });
});

test("a name that cannot be said is an error, not a file that is left out", async () => {
  const files = filesOf({ "/w": { kind: "folder" }, "/w/\uFFFD": { sizeBytes: 1 } });
  await expect(pack(files, { names: "utf8" })).rejects.toMatchObject({ code: "not_supported" });
});

test("numbers that octal cannot hold are written in binary, as tar reads them", async () => {
  const header = tarHeader({
    kind: "file",
    name: Buffer.from("large"),
    mode: 0o644,
    uid: 4_000_000_000,
    gid: 3_000_000,
    sizeBytes: 9 * 2 ** 30,
    modifiedMs: 0,
  });
  const folder = await mkdtemp(join(tmpdir(), "sandboxer-pack-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "archive.tar"), header);
  const listed = await execFileAsync("tar", ["-t", "-v", "--numeric-owner", "-f", join(folder, "archive.tar")]).catch(
    (error: { stdout: string }) => error,
  );
  expect(listed.stdout).toMatch(/4000000000\/3000000 +9663676416/);
});

test("a file that is being read is closed when whoever packs gives up", async () => {
  const files = filesOf({ "/w": { kind: "folder" }, "/w/a": { content: "12" } });
  let closed = false;
  files.read = async function* () {
    try {
      yield Buffer.from("1");
      yield Buffer.from("2");
    } finally {
      closed = true;
    }
  };
  const tally = { files: 0, folders: 0, links: 0, bytes: 0, leftOut: 0 };
  for await (const piece of packWorkspace({ files, names: "latin1", folder: "/w", maxBytes: 100 }, tally)) {
    if (piece.length === 1) break;
  }
  expect([tally.files, closed]).toEqual([1, true]);
});
