import { execFile } from "node:child_process";
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import tarStream, { type Header } from "tar-stream";
import { packFolder, unpackFolder } from "../../src/node/index.ts";

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "sandboxer-folders-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function madeFolder(): Promise<string> {
  const folder = await temporaryFolder();
  await mkdir(join(folder, "a/empty"), { recursive: true });
  await mkdir(join(folder, "a", "x".repeat(120)));
  await writeFile(join(folder, "a", "x".repeat(120), "ünï"), "deep");
  await writeFile(join(folder, "program"), "#!/bin/sh\n");
  await writeFile(join(folder, "large"), Buffer.alloc(300_000, "abc"));
  await chmod(join(folder, "program"), 0o755);
  await symlink("program", join(folder, "link"));
  return folder;
}

/** Everything below a folder: kind, mode, seconds, contents. */
async function facts(folder: string, below = ""): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  for (const name of await readdir(join(folder, below))) {
    const path = join(below, name);
    const entry = await lstat(join(folder, path));
    const { mode, mtimeMs } = entry;
    if (entry.isDirectory()) Object.assign(found, { [path]: mode }, await facts(folder, path));
    else if (entry.isSymbolicLink()) found[path] = await readlink(join(folder, path));
    else found[path] = [mode, Math.floor(mtimeMs / 1000), await readFile(join(folder, path), "utf8")];
  }
  return found;
}

test("a folder is packed into a tar and unpacked unchanged", async () => {
  const [from, to] = [await madeFolder(), await temporaryFolder()];
  expect(await unpackFolder(packFolder(from), join(to, "new", "folder"))).toEqual({ files: 4, bytes: 300_014 });
  expect(await facts(join(to, "new", "folder"))).toEqual(await facts(from));
  await unpackFolder(packFolder(from), join(to, "new", "folder"));
  expect(await facts(join(to, "new", "folder"))).toEqual(await facts(from));
});

test("the machine's tar reads it", async () => {
  const [from, to] = [await madeFolder(), await temporaryFolder()];
  await writeFile(join(to, "a.tar"), packFolder(from));
  await mkdir(join(to, "out"));
  await promisify(execFile)("tar", ["-xpf", join(to, "a.tar"), "-C", join(to, "out")]);
  expect(await facts(join(to, "out"))).toEqual(await facts(from));
});

test("a filter leaves out refused entries with their contents", async () => {
  const [from, to] = [await madeFolder(), await temporaryFolder()];
  await unpackFolder(packFolder(from, { filter: (path) => path !== "a" && path !== "large" }), to);
  expect((await readdir(to)).toSorted()).toEqual(["link", "program"]);
});

test("a file that shrinks while it is read leaves the tar valid", async () => {
  const [from, to] = [await temporaryFolder(), await temporaryFolder()];
  await writeFile(join(from, "a"), Buffer.alloc(500_000, "a"));
  await writeFile(join(from, "b"), "after");
  async function* shrinking(): AsyncGenerator<Uint8Array> {
    let pieces = 0;
    for await (const piece of packFolder(from)) {
      if ((pieces += 1) === 2) await truncate(join(from, "a"), 100_000);
      yield piece;
    }
  }
  await unpackFolder(shrinking(), to);
  expect((await lstat(join(to, "a"))).size).toBe(500_000);
  expect(await readFile(join(to, "b"), "utf8")).toBe("after");
});

describe("a hostile tar writes nothing outside the folder", () => {
  async function expectRefused(...headers: Partial<Header>[]): Promise<void> {
    const root = await temporaryFolder();
    await writeFile(join(root, "victim"), "safe");
    await mkdir(join(root, "target"));
    const pack = tarStream.pack();
    for (const header of headers) pack.entry(header as Header, header.type === undefined ? "evil" : "");
    pack.finalize();
    await expect(unpackFolder(pack as AsyncIterable<Uint8Array>, join(root, "target"))).rejects.toMatchObject({
      code: "permission_denied",
    });
    expect(await readFile(join(root, "victim"), "utf8")).toBe("safe");
    expect((await readdir(root)).toSorted()).toEqual(["target", "victim"]);
  }

  test("by dots, or an absolute path", async () => {
    await expectRefused({ name: "../victim" });
    await expectRefused({ name: "a/../../victim" });
    await expectRefused({ name: "/tmp/sandboxer-evil" });
  });

  test("through a link that it brings along", async () => {
    await expectRefused({ name: "out", type: "symlink", linkname: ".." }, { name: "out/victim" });
    await expectRefused({ name: "out", type: "symlink", linkname: ".." }, { name: "out/new/file" });
    await expectRefused({ name: "out", type: "symlink", linkname: ".." }, { name: "out", type: "directory" });
  });

  test("by hard links and devices", async () => {
    await expectRefused({ name: "hard", type: "link", linkname: "../victim" });
    await expectRefused({ name: "device", type: "block-device" });
  });

  test("but a link is replaced by a file with its name", async () => {
    const root = await temporaryFolder();
    await writeFile(join(root, "victim"), "safe");
    const pack = tarStream.pack();
    pack.entry({ name: "x", type: "symlink", linkname: "../victim" });
    pack.entry({ name: "x", mode: 0o4755 }, "mine");
    pack.finalize();
    await unpackFolder(pack as AsyncIterable<Uint8Array>, join(root, "target"));
    expect(await readFile(join(root, "victim"), "utf8")).toBe("safe");
    expect(await readFile(join(root, "target", "x"), "utf8")).toBe("mine");
    expect((await lstat(join(root, "target", "x"))).mode & 0o7777).toBe(0o755);
  });
});

test.each([
  { folder: "d", link: "d", to: "../outside" },
  { folder: "a/outside", link: "a", to: ".." },
])("a folder $folder that a hostile tar replaces by a link gives nothing its mode", async ({ folder, link, to }) => {
  const root = await temporaryFolder();
  await mkdir(join(root, "outside"), { mode: 0o700 });
  const before = await lstat(join(root, "outside"));
  const pack = tarStream.pack();
  pack.entry({ name: `${folder}/`, type: "directory", mode: 0o777, mtime: new Date(0) });
  pack.entry({ name: link, type: "symlink", linkname: to });
  pack.finalize();
  await unpackFolder(pack as AsyncIterable<Uint8Array>, join(root, "target"));
  const { mode, mtimeMs } = await lstat(join(root, "outside"));
  expect([mode, mtimeMs]).toEqual([before.mode, before.mtimeMs]);
});
