import { execFile } from "node:child_process";
import { lstat, mkdtemp, readdir, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { SandboxerError } from "@sandboxer/protocol";
import { extract } from "tar-stream";
import { expect, onTestFinished, test } from "vitest";
import type { FileEntry, RawFiles } from "../../../../src/backends/backend.ts";
import { packWorkspace, type PackSource } from "../../../../src/manager/snapshots/portable/pack-workspace.ts";
import { readAttributes } from "../../../../src/manager/files/tar-attributes.ts";
import { emptyTally, type WorkspaceTally } from "../../../../src/manager/snapshots/portable/workspace-archive.ts";
import { tarHeader } from "../../../../src/support/tar-header.ts";

const execFileAsync = promisify(execFile);
const SECONDS = 1_234_567_890;

/** Files with names of any bytes, each character one of them. */
function filesOf(tree: Readonly<Record<string, Partial<FileEntry> & { readonly content?: string }>>): RawFiles {
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
  } as unknown as RawFiles;
}

async function pack(files: RawFiles, more: Partial<PackSource> = {}): Promise<[Buffer, WorkspaceTally]> {
  const tally = emptyTally();
  const source: PackSource = { files, names: "latin1", folder: "/w", maxBytes: 1 << 20, ...more };
  return [Buffer.concat(await Array.fromAsync(packWorkspace(source, tally))), tally];
}

async function untar(archive: Buffer, flags: readonly string[] = []): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "sandboxer-pack-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "archive.tar"), archive);
  await execFileAsync("tar", ["-x", "-p", ...flags, "-f", "archive.tar"], { cwd: folder });
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
  expect(tally).toEqual({ ...emptyTally(), files: 3, folders: 1, links: 1, bytes: 8, leftOut: 1 });
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

test("hard links are one file again for the system's tar; a file that changed meanwhile is separate", async () => {
  const long = "n".repeat(180);
  const one = { content: "one", device: 1n, inode: 7n, links: 3 };
  const [archive, tally] = await pack(
    filesOf({
      "/w": { kind: "folder", mode: 0o755, links: 2 },
      "/w/a": { kind: "folder", mode: 0o755 },
      [`/w/a/${long}`]: { ...one, mode: 0o4755 },
      "/w/b": { ...one, mode: 0o4755 },
      "/w/changed": { ...one, content: "other" },
      "/w/elsewhere": { ...one, device: 2n },
      "/w/single": { content: "single", device: 1n, inode: 8n, links: 1 },
    }),
  );
  expect([tally.files, tally.hardLinks, tally.bytes]).toEqual([5, 1, 3 + 5 + 3 + 6]);
  const folder = await untar(archive);
  const first = await lstat(join(folder, "a", long));
  expect([first.nlink, (await lstat(join(folder, "b"))).ino]).toEqual([2, first.ino]);
  expect(first.mode & 0o7777).toBe(0o4755);
  const others = ["changed", "elsewhere", "single"].map((name) => readFile(join(folder, name), "latin1"));
  expect(await Promise.all(others)).toEqual(["other", "one", "single"]);
});

test("the system's tar and ours read extended attributes, with values of any bytes", async () => {
  const long = "n".repeat(180);
  const files = filesOf({ "/w": { kind: "folder", mode: 0o755 }, [`/w/${long}`]: { content: "x" }, "/w/f": {} });
  const value = Buffer.from([0, 255, 10, 61, 195]);
  const names = new Map([
    ["user.plain", Buffer.from("text")],
    ["user.a=b%\xff", value],
  ]);
  files.attributes = async (path) => (path === "/w/f" ? new Map() : names);
  const [archive, tally] = await pack(files);
  expect([tally.attributes, tally.attributesLost]).toEqual([4, 0]);
  const folder = await untar(archive, ["--xattrs", "--xattrs-include=user.*"]);
  const script =
    "import os,sys;print(sorted((os.fsencode(n).hex(),os.getxattr(sys.argv[1],n).hex()) for n in os.listxattr(sys.argv[1])))";
  const told = async (path: string) => (await execFileAsync("python3", ["-c", script, path])).stdout.trim();
  const expected = "[('757365722e613d6225ff', '00ff0a3dc3'), ('757365722e706c61696e', '74657874')]";
  expect([await told(join(folder, long)), await told(join(folder, "f"))]).toEqual([expected, "[]"]);
  const read = await Array.fromAsync(Readable.from([archive]).pipe(extract()), (entry) => {
    entry.resume();
    return readAttributes((entry.header.pax ?? {}) as Record<string, string>);
  });
  expect(read).toEqual([
    { attributes: names, unreadable: 0 },
    { attributes: new Map(), unreadable: 0 },
    { attributes: names, unreadable: 0 },
  ]);
});

test("unreadable attributes are counted, or not requested again", async () => {
  const files = filesOf({ "/w": { kind: "folder", mode: 0o755 }, "/w/a": {}, "/w/b": {} });
  files.attributes = async () => {
    throw new SandboxerError("too_large", "Too many.");
  };
  expect((await pack(files))[1]).toMatchObject({ attributes: undefined, attributesLost: 3, files: 2 });
  let asked = 0;
  files.attributes = async () => {
    asked += 1;
    throw new SandboxerError("not_supported", "An old agent.");
  };
  expect((await pack(files))[1]).toMatchObject({ attributes: undefined, attributesLost: 0, files: 2 });
  expect(asked).toBe(1);
});

test("a file that has shrunk is padded, one that has grown is truncated", async () => {
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

test("a file that is larger than the limit is not packed", async () => {
  const files = filesOf({ "/w": { kind: "folder" }, "/w/sparse": { content: "", sizeBytes: 2 ** 40 } });
  await expect(pack(files)).rejects.toMatchObject({ code: "too_large" });
});

test("a name that cannot be encoded is an error, not an omitted file", async () => {
  const files = filesOf({ "/w": { kind: "folder" }, "/w/\uFFFD": { sizeBytes: 1 } });
  await expect(pack(files, { names: "utf8" })).rejects.toMatchObject({ code: "not_supported" });
});

test("numbers too large for octal are written in binary, as tar reads them", async () => {
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

test("a file that is being read is closed when the caller aborts", async () => {
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
  const tally = emptyTally();
  for await (const piece of packWorkspace({ files, names: "latin1", folder: "/w", maxBytes: 100 }, tally)) {
    if (piece.length === 1) break;
  }
  expect([tally.files, closed]).toEqual([1, true]);
});

test.each([".", "..", "", "a/b", "a\0b"])("a folder that lists %j is not packed", async (name) => {
  const files = filesOf({ "/w": { kind: "folder" } });
  let lists = 0;
  files.list = async () => {
    lists += 1;
    if (lists > 10) throw new Error("it goes round in circles");
    return [{ ...(await files.stat("/w")), name }];
  };
  await expect(pack(files)).rejects.toMatchObject({ code: "sandbox_failed" });
});

test("an endless tree is refused", async () => {
  const files = filesOf({ "/w": { kind: "folder" } });
  let lists = 0;
  files.list = async () => {
    lists += 1;
    if (lists > 5000) throw new Error("it has no end");
    return [{ ...(await files.stat("/w")), name: "a" }];
  };
  await expect(pack(files)).rejects.toMatchObject({
    code: "too_large",
    message: expect.stringContaining("/a/a") as string,
  });
});

test("folders with too many entries are refused", async () => {
  const files = filesOf({ "/w": { kind: "folder" } });
  const link: FileEntry = { ...(await files.stat("/w")), kind: "symlink", linkTarget: "x".repeat(600_000) };
  files.list = async () => Array.from({ length: 500 }, (_, number) => ({ ...link, name: String(number) }));
  let bytes = 0;
  const source: PackSource = { files, names: "latin1", folder: "/w", maxBytes: 1 << 20 };
  const packing = (async () => {
    for await (const piece of packWorkspace(source, emptyTally())) bytes += piece.length;
  })();
  await expect(packing).rejects.toMatchObject({ code: "too_large" });
  expect(bytes).toBeLessThanOrEqual(256 * 1024 ** 2);
});
