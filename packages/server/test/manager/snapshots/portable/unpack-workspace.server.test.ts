import { execFileSync } from "node:child_process";
import { createWriteStream } from "node:fs";
import { chmod, link, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { SandboxerError } from "@sandboxer/protocol";
import { type Header, pack } from "tar-stream";
import { expect, onTestFinished, test } from "vitest";
import type { RawFiles, SandboxHandle, SandboxSpec } from "../../../../src/backends/backend.ts";
import { FakeBackend } from "../../../../src/backends/fake/index.ts";
import { unpackWorkspace } from "../../../../src/manager/snapshots/portable/unpack-workspace.ts";

const SPEC: SandboxSpec = { env: {}, resources: {}, network: "none" };

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "sandboxer-unpack-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

type Entry = Partial<Header> & { readonly name: string; readonly content?: string };

async function archiveOf(entries: readonly Entry[]): Promise<string> {
  const path = join(await temporaryFolder(), "workspace.tar.gz");
  const archive = pack();
  for (const { content = "", ...header } of entries) archive.entry({ mode: 0o644, ...header }, content);
  archive.finalize();
  await pipeline(archive, createGzip(), createWriteStream(path));
  return path;
}

async function fresh(): Promise<{ backend: FakeBackend; handle: SandboxHandle }> {
  const backend = new FakeBackend();
  onTestFinished(() => backend.close());
  return { backend, handle: await backend.acquire({ sandboxId: "box", spec: SPEC }) };
}

async function text(handle: SandboxHandle, path: string): Promise<string> {
  return Buffer.concat(await Array.fromAsync(handle.files.read(path))).toString();
}

test("an archive from the system's tar is unpacked, hard links as copies", async () => {
  const folder = await temporaryFolder();
  const long = "l".repeat(150);
  await mkdir(join(folder, "w", "empty"), { recursive: true });
  await writeFile(join(folder, "w", long), "long");
  await link(join(folder, "w", long), join(folder, "w", "twin"));
  await symlink(long, join(folder, "w", "ü"));
  await chmod(join(folder, "w", long), 0o600);
  for (const format of ["gnu", "pax", "ustar"]) {
    const path = join(folder, `${format}.tar.gz`);
    const skipped = format === "ustar" ? [`--exclude=*${long}`, "--exclude=twin", "--exclude=ü"] : [];
    execFileSync("tar", ["-C", join(folder, "w"), `--format=${format}`, ...skipped, "-c", "-z", "-f", path, "."]);
    const { backend, handle } = await fresh();
    await unpackWorkspace(backend, handle, path, {});
    expect((await handle.files.stat("/workspace/empty")).kind).toBe("folder");
    if (format === "ustar") continue;
    expect([await text(handle, `/workspace/${long}`), await text(handle, "/workspace/twin")]).toEqual(["long", "long"]);
    expect((await handle.files.stat("/workspace/ü")).linkTarget).toBe(long);
    expect((await handle.files.stat(`/workspace/${long}`)).mode & 0o7777).toBe(0o600);
  }
});

test.each<[string, Entry[]]>([
  ["a name that leads out", [{ name: "../evil", content: "x" }]],
  ["an absolute name", [{ name: "/etc/evil", content: "x" }]],
  [
    "a way through a link",
    [
      { name: "./", type: "directory", mode: 0o755 },
      { name: "./out", type: "symlink", linkname: "/tmp" },
      { name: "./out/evil", content: "x" },
    ],
  ],
  ["a device", [{ name: "./null", type: "character-device" }]],
])("an archive with %s is damaged, and nothing is written outside", async (_what, entries) => {
  const { backend, handle } = await fresh();
  const unpacked = unpackWorkspace(backend, handle, await archiveOf(entries), {});
  await expect(unpacked).rejects.toMatchObject({ code: "image_damaged" });
  for (const path of ["/evil", "/etc/evil", "/tmp/evil"]) {
    await expect(handle.files.stat(path)).rejects.toMatchObject({ code: "file_not_found" });
  }
});

test("an archive that is not gzip, or truncated, is damaged", async () => {
  const whole = await archiveOf([{ name: "./a", content: "x".repeat(100_000) }]);
  const path = join(await temporaryFolder(), "bad.tar.gz");
  const bytes = await readFile(whole);
  for (const content of [Buffer.from("no gzip"), bytes.subarray(0, bytes.length >> 1)]) {
    await writeFile(path, content);
    const { backend, handle } = await fresh();
    await expect(unpackWorkspace(backend, handle, path, {})).rejects.toMatchObject({ code: "image_damaged" });
  }
});

test("files of the captured user go to the user here, others keep their owners and lose the right to act as them", async () => {
  const entry = (name: string, uid: number, mode: number): Entry => ({ name, uid, gid: uid, mode, content: "x" });
  const path = await archiveOf([
    { name: "./", type: "directory", uid: 501, gid: 501, mode: 0o755 },
    entry("./mine", 501, 0o4755),
    entry("./root", 0, 0o6755),
    entry("./other", 1234, 0o2711),
  ]);
  const { backend, handle } = await fresh();
  const calls: string[] = [];
  const rawFiles: RawFiles = {
    ...bound(handle),
    set: async (path_, { owner, mode }) => {
      if (owner !== undefined) calls.push(`${path_} ${owner.uid}:${owner.gid}`);
      if (mode !== undefined) calls.push(`${path_} ${mode.toString(8)}`);
    },
  };
  await unpackWorkspace(backend, withRaw(handle, rawFiles), path, {});
  expect(calls).toEqual([
    "/workspace/mine 1000:1000",
    "/workspace/mine 4755",
    "/workspace/root 0:0",
    "/workspace/root 755",
    "/workspace/other 1234:1234",
    "/workspace/other 711",
    "/workspace 755",
  ]);
});

test("hard links and attributes are kept where they can be, and counted where they cannot", async () => {
  const value = Buffer.from([0, 255, 61]).toString("base64");
  const path = await archiveOf([
    { name: "./", type: "directory", mode: 0o755, pax: { "SCHILY.xattr.user.root": "r" } },
    { name: "./f", content: "f", pax: { "LIBARCHIVE.xattr.user.a%3D": value, "SCHILY.xattr.user.a%3D": "\uFFFD" } },
    { name: "./g", content: "g", pax: { "SCHILY.xattr.user.b": "\uFFFD", "SCHILY.xattr.security.c": "c" } },
    { name: "./twin", type: "link", linkname: "./f" },
    { name: "./other", type: "link", linkname: "./g" },
  ]);
  const unpacked = async (more: Partial<RawFiles>): Promise<readonly [number, number, string]> => {
    const { backend, handle } = await fresh();
    const raw = { ...bound(handle), set: async () => {}, ...more };
    const { copiedLinks, lostAttributes } = await unpackWorkspace(backend, withRaw(handle, raw), path, {});
    const twin = await text(handle, "/workspace/twin").catch(() => "no copy");
    return [copiedLinks, lostAttributes, twin];
  };
  expect(await unpacked({})).toEqual([2, 3, "f"]);
  const calls: string[] = [];
  const keeping: Partial<RawFiles> = {
    makeHardLink: async (existing, made) => void calls.push(`${existing} ${made}`),
    setAttribute: async (at, name, given) => void calls.push(`${at} ${name} ${Buffer.from(given).toString("hex")}`),
  };
  expect(await unpacked(keeping)).toEqual([0, 1, "no copy"]);
  expect(calls).toEqual([
    "/workspace user.root 72",
    "/workspace/f user.a= 00ff3d",
    "/workspace/f /workspace/twin",
    "/workspace/g /workspace/other",
  ]);
  const refuse = (code: "no_space" | "not_supported" | "sandbox_failed") => async (): Promise<void> => {
    throw new SandboxerError(code, "No.");
  };
  const refused = { makeHardLink: refuse("not_supported"), setAttribute: refuse("no_space") };
  expect(await unpacked(refused)).toEqual([2, 3, "f"]);
  await expect(unpacked({ setAttribute: refuse("sandbox_failed") })).rejects.toMatchObject({ code: "sandbox_failed" });
});

function withRaw(handle: SandboxHandle, rawFiles: RawFiles): SandboxHandle {
  return { ...bound(handle), files: handle.files, rawFiles } as unknown as SandboxHandle;
}

/** The files of a sandbox as plain functions. */
function bound({ files }: SandboxHandle): RawFiles {
  return {
    stat: (path) => files.stat(path),
    list: (path) => files.list(path),
    read: (path, options) => files.read(path, options),
    write: (path, content, options) => files.write(path, content, options),
    makeFolder: (path, options) => files.makeFolder(path, options),
    remove: (path, options) => files.remove(path, options),
    rename: (from, to) => files.rename(from, to),
    makeSymlink: (target, path) => files.makeSymlink(target, path),
    set: (path, attributes) => files.set(path, attributes),
  };
}
