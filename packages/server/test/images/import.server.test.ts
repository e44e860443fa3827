import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import { FakeRegistry } from "./support/fake-registry.ts";
import {
  digestOf,
  madeImage,
  madeLayer,
  OCI_INDEX,
  tarOf,
  type MadeEntry,
  type MadeImage,
} from "./support/made-image.ts";
import { openLibrary } from "./support/open-library.ts";

const hex = (digest: string): string => digest.replace("sha256:", "");

async function anImage(): Promise<MadeImage> {
  const layers = [
    await madeLayer([{ name: "hello", content: "hello\n" }]),
    await madeLayer([{ name: "more" }], "none"),
  ];
  return madeImage(layers, { Env: ["A=b"] });
}

function blobsOf(image: MadeImage): MadeEntry[] {
  return [...image.blobs, [image.digest, image.manifest] as const].map(([digest, bytes]) => ({
    name: `blobs/sha256/${hex(digest)}`,
    content: bytes,
  }));
}

async function* asStream(bytes: Buffer): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 1000) yield bytes.subarray(at, at + 1000);
}

describe("an import", () => {
  it("accepts an OCI layout, whose image has the same digest as in a registry", async () => {
    const image = await anImage();
    const index = { manifests: [{ mediaType: OCI_INDEX, digest: image.digest, size: image.manifest.length }] };
    const archive = await tarOf([{ name: "index.json", content: JSON.stringify(index) }, ...blobsOf(image)]);
    const library = await openLibrary(await FakeRegistry.start(), { defaultRegistry: "docker.io" });
    await expect(library.importArchive(asStream(archive), undefined)).rejects.toThrow("has no name");
    expect(await library.importArchive(asStream(archive), "team/tool:2")).toMatchObject({
      digest: image.digest,
      names: ["docker.io/team/tool:2"],
      defaults: { env: { A: "b" } },
    });
    const held = await library.use("team/tool:2");
    expect(await readFile(join(held.path, "hello"), "utf8")).toBe("hello\n");
  });

  it("is not needed for a layout on this machine, whose files stay", async () => {
    const image = await anImage();
    const folder = await temporaryFolder();
    await mkdir(join(folder, "blobs/sha256"), { recursive: true });
    for (const { name, content } of blobsOf(image)) await writeFile(join(folder, name), content!);
    const manifests = [
      { digest: image.digest, size: 1, annotations: { "org.opencontainers.image.ref.name": "latest" } },
    ];
    await writeFile(join(folder, "index.json"), JSON.stringify({ manifests }));
    const library = await openLibrary(await FakeRegistry.start());
    const held = await library.useLayout("oci:here", folder, "latest");
    expect(held).toMatchObject({ name: "oci:here", digest: image.digest, defaults: { env: { A: "b" } } });
    expect(await readFile(join(held.path, "hello"), "utf8")).toBe("hello\n");
    expect(await readdir(join(folder, "blobs/sha256"))).toHaveLength(image.blobs.size + 1);
    expect((await library.useLayout("oci:here", folder, undefined)).path).toBe(held.path);
    await expect(library.useLayout("oci:here", folder, "other")).rejects.toThrow('no tag "other"');
    await expect(library.useLayout("oci:here", "/nonexistent", "x")).rejects.toThrow("not an OCI layout");
  });

  it("accepts an archive of `docker save`, old or new, with its names", async () => {
    const image = await anImage();
    const [config = ""] = image.blobs.keys();
    const layers = image.layers.map(({ bytes }) => `${hex(digestOf(bytes))}/layer.tar`);
    const manifest = [{ Config: `${hex(config)}.json`, RepoTags: ["tool:1", "team/tool:latest"], Layers: layers }];
    const archive = await tarOf([
      { name: "repositories", content: "{}" },
      { name: `${hex(config)}.json`, content: image.blobs.get(config)! },
      ...image.layers.map(({ bytes }, index) => ({ name: layers[index]!, content: bytes })),
      { name: "manifest.json", content: JSON.stringify(manifest) },
    ]);
    const folder = await temporaryFolder();
    const library = await openLibrary(await FakeRegistry.start(), { defaultRegistry: "docker.io", folder });
    const imported = await library.importArchive(asStream(archive), undefined);
    expect(imported.names).toEqual(["docker.io/library/tool:1", "docker.io/team/tool:latest"]);
    // The same archive is the same image.
    expect((await library.importArchive(asStream(archive), undefined)).digest).toBe(imported.digest);
    expect(await readdir(join(folder, "imports"))).toEqual([]);
  });

  it.each<[string, (image: MadeImage) => MadeEntry[], RegExp]>([
    ["nothing of an image", () => [{ name: "readme", content: "hello" }], /neither an OCI layout nor/],
    [
      "a missing layer",
      (image) => [layoutOf(image), ...blobsOf(image).slice(0, 1), ...blobsOf(image).slice(-1)],
      /missing/,
    ],
    [
      "a changed config",
      (image) => [layoutOf(image), { ...blobsOf(image)[0]!, content: "{}" }, ...blobsOf(image).slice(1)],
      /has the digest/,
    ],
    [
      "a path",
      () => [{ name: "manifest.json", content: JSON.stringify([{ Config: "../../../etc/passwd", Layers: [] }]) }],
      /names a file that no image has/,
    ],
    ["two images", (image) => [layoutOf(image, image), ...blobsOf(image)], /several images/],
  ])("with %s is refused", async (_, entriesOf, why) => {
    const archive = await tarOf(entriesOf(await anImage()));
    const library = await openLibrary(await FakeRegistry.start());
    await expect(library.importArchive(asStream(archive), "team/tool:1")).rejects.toThrow(why);
    expect(await library.list()).toEqual([]);
  });

  it("that is no archive, or a cut one, is refused", async () => {
    const library = await openLibrary(await FakeRegistry.start());
    for (const bytes of [
      Buffer.alloc(2000, "x"),
      (await tarOf([{ name: "index.json", content: "x".repeat(5000) }])).subarray(0, 2000),
    ]) {
      await expect(library.importArchive(asStream(bytes), "team/tool:1")).rejects.toMatchObject({
        code: "bad_request",
      });
    }
  });

  it("that is too large is refused", async () => {
    const archive = await tarOf([{ name: `blobs/sha256/${"0".repeat(64)}`, content: Buffer.alloc(50_000) }]);
    const library = await openLibrary(await FakeRegistry.start(), { limits: { unpackedBytes: 10_000 } });
    await expect(library.importArchive(asStream(archive), "team/tool:1")).rejects.toThrow(/more than 10000 bytes/);
  });
});

function layoutOf(...images: MadeImage[]): MadeEntry {
  const manifests = images.map(({ digest, manifest }) => ({ digest, size: manifest.length }));
  return { name: "index.json", content: JSON.stringify({ manifests }) };
}
