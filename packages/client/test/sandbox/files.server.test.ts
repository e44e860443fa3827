import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { downloadFolder, uploadFolder } from "../../src/node/index.ts";
import { sandbox } from "../support/server.ts";

test("files are written, read, listed, described, renamed and removed", async () => {
  const { files } = await sandbox();
  await files.write("/tmp/a/b/text", "héllo", { mode: 0o640 });
  expect(await files.readText("/tmp/a/b/text")).toBe("héllo");
  expect(await files.read("/tmp/a/b/text", { offset: 1, length: 2 })).toEqual(new TextEncoder().encode("é"));
  expect(await files.stat("/tmp/a/b/text")).toMatchObject({ kind: "file", mode: 0o640, sizeBytes: 6, name: "text" });
  await files.mkdir("/tmp/a/empty");
  expect((await files.list("/tmp/a")).map(({ name, kind }) => [name, kind])).toEqual([
    ["b", "folder"],
    ["empty", "folder"],
  ]);
  await files.rename("/tmp/a/b/text", "/tmp/a/moved");
  expect(await files.exists("/tmp/a/b/text")).toBe(false);
  await files.remove("/tmp/a/moved");
  await expect(files.readText("/tmp/a/moved")).rejects.toMatchObject({ code: "file_not_found" });
  await files.remove("/tmp/a", { recursive: true });
  expect(await files.exists("/tmp/a")).toBe(false);
});

test("bytes, blobs and streams of any size are written", async () => {
  const { files } = await sandbox();
  const bytes = new Uint8Array(2_000_000).map((_, index) => index % 251);
  for (const data of [bytes, bytes.buffer, new Blob([bytes]), new Blob([bytes]).stream()]) {
    await files.write("/tmp/data", data);
    expect(Buffer.compare(await files.read("/tmp/data"), bytes)).toBe(0);
  }
  let length = 0;
  for await (const chunk of await files.readStream("/tmp/data", { offset: 500_000 })) length += chunk.length;
  expect(length).toBe(1_500_000);
  await files.write("/tmp/empty", "");
  expect(await files.read("/tmp/empty")).toHaveLength(0);
});

test("parent folders are created unless that is turned off", async () => {
  const { files } = await sandbox();
  await expect(files.write("/tmp/none/file", "x", { parents: false })).rejects.toMatchObject({
    code: "file_not_found",
  });
  await expect(files.mkdir("/tmp/none/folder", { parents: false })).rejects.toMatchObject({ code: "file_not_found" });
});

test("a paused sandbox is resumed for its files, also for a stream", async () => {
  const box = await sandbox();
  await box.files.write("/tmp/kept", "kept");
  await box.checkpoint();
  expect(await box.files.readText("/tmp/kept")).toBe("kept");
  await box.checkpoint();
  await box.files.write("/tmp/kept", new Blob(["streamed"]).stream());
  expect(await box.files.readText("/tmp/kept")).toBe("streamed");
});

test("local folders are uploaded and downloaded", async () => {
  const local = await mkdtemp(join(tmpdir(), "sandboxer-files-"));
  onTestFinished(() => rm(local, { recursive: true, force: true }));
  await mkdir(join(local, "in", "sub", "x".repeat(110)), { recursive: true });
  await writeFile(join(local, "in", "sub", "x".repeat(110), "deep"), "deep");
  await writeFile(join(local, "in", "large"), Buffer.alloc(1_000_000, "abc"));
  await writeFile(join(local, "in", "skipped"), "");
  await symlink("large", join(local, "in", "link"));
  const box = await sandbox();
  const filter = (path: string): boolean => path !== "skipped";
  expect(await uploadFolder(box, join(local, "in"), "/tmp/up", { filter })).toEqual({ files: 3, bytes: 1_000_004 });
  expect(await box.exec("cat sub/*/deep; ls", { cwd: "/tmp/up" })).toMatchObject({ exitCode: 0 });
  expect((await box.files.list("/tmp/up")).map(({ name }) => name)).toEqual(["large", "link", "sub"]);
  expect(await downloadFolder(box, "/tmp/up", join(local, "out"))).toEqual({ files: 3, bytes: 1_000_004 });
  expect(await readFile(join(local, "out", "sub", "x".repeat(110), "deep"), "utf8")).toBe("deep");
  expect(await readFile(join(local, "out", "link"), "utf8")).toHaveLength(1_000_000);
});

test("a tar is transferred as a stream", async () => {
  const box = await sandbox();
  await box.files.write("/tmp/from/file", "carried");
  expect(await box.files.uploadTar("/tmp/to", await box.files.downloadTar("/tmp/from"))).toEqual({
    files: 1,
    bytes: 7,
  });
  expect(await box.files.readText("/tmp/to/file")).toBe("carried");
});
