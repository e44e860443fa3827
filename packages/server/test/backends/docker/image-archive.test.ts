import { mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pack } from "tar-stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { checkImageArchive } from "../../../src/backends/docker/image-archive.ts";

const NAME = "sandboxer-snapshot:1";
let folder: string;
beforeAll(async () => (folder = await mkdtemp(join(tmpdir(), "image-archive-"))));
afterAll(() => rm(folder, { recursive: true }));

async function archiveOf(files: readonly (readonly [string, unknown])[]): Promise<string> {
  const archive = pack();
  archive.entry({ name: "blobs/" + "l".repeat(120) }, "x".repeat(3000));
  for (const [name, content] of files)
    archive.entry({ name }, typeof content === "string" ? content : JSON.stringify(content));
  archive.finalize();
  const path = join(folder, `${Math.random()}.tar`);
  await writeFile(path, (await Array.fromAsync(archive)) as Buffer[]);
  return path;
}

const manifest = (...tags: readonly string[]) =>
  ["manifest.json", [{ Config: "c", RepoTags: tags, Layers: [] }]] as const;
const annotated = (name: string) =>
  ["index.json", { manifests: [{ annotations: { "io.containerd.image.name": name } }] }] as const;
const check = async (...files: readonly (readonly [string, unknown])[]): Promise<void> =>
  checkImageArchive(await archiveOf(files), NAME);

test("an archive with only the expected name is accepted", async () => {
  await expect(check(manifest(NAME))).resolves.toBe(undefined);
  await expect(check(annotated(`docker.io/library/${NAME}`), manifest(NAME))).resolves.toBe(undefined);
});

test("an archive that would move other names is refused", async () => {
  const damaged = { code: "image_damaged" };
  await expect(check(manifest(NAME, "debian:13"))).rejects.toMatchObject(damaged);
  await expect(check(manifest("debian:13"))).rejects.toMatchObject(damaged);
  await expect(check(manifest(NAME), annotated("docker.io/library/debian:13"))).rejects.toMatchObject(damaged);
  await expect(check(manifest(NAME), manifest("debian:13"))).rejects.toMatchObject(damaged);
  await expect(check(manifest())).rejects.toMatchObject(damaged);
  await expect(check()).rejects.toMatchObject(damaged);
});

test("a file that is not an archive, or is truncated, is damaged", async () => {
  const damaged = { code: "image_damaged" };
  await expect(check(["manifest.json", "{"])).rejects.toMatchObject(damaged);
  await expect(check(["manifest.json", { not: "a list" }])).rejects.toMatchObject(damaged);
  const short = await archiveOf([manifest(NAME)]);
  await truncate(short, 2000);
  await expect(checkImageArchive(short, NAME)).rejects.toMatchObject(damaged);
  await writeFile(short, Buffer.alloc(2048, 0xee));
  await expect(checkImageArchive(short, NAME)).rejects.toMatchObject(damaged);
});
