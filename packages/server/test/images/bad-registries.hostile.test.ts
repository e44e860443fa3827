import { createHash } from "node:crypto";
import { type FileHandle, open, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import type { ImageLibrary } from "../../src/images/image-library.ts";
import { answerRange, FakeRegistry } from "./support/fake-registry.ts";
import { digestOf, madeImage, madeLayer, OCI_MANIFEST, type MadeImage } from "./support/made-image.ts";
import { openLibrary } from "./support/open-library.ts";

const CONTENT = Buffer.alloc(400_000, "some content that is not the same everywhere ");

async function anImage(): Promise<MadeImage> {
  return madeImage([await madeLayer([{ name: "data", content: CONTENT }], "none")]);
}

async function expectRefused(library: ImageLibrary, name: string, why: string | RegExp): Promise<void> {
  await expect(library.use(name)).rejects.toThrow(why);
  expect(await library.list()).toEqual([]);
}

/** Answers at most 100,000 bytes of a layer, and cuts the connection. */
const answerPart: FakeRegistry["answerBlob"] = (request, response, bytes) => {
  if (bytes.length < 10_000) return answerRange(request, response, bytes);
  const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
  const range = { "content-range": `bytes ${start}-${bytes.length - 1}/${bytes.length}` };
  response.writeHead(start === 0 ? 200 : 206, {
    "content-length": bytes.length - start,
    ...(start === 0 ? {} : range),
  });
  response.write(bytes.subarray(start, start + 100_000), () => setImmediate(() => response.destroy()));
  return undefined;
};

describe("a registry that lies", () => {
  it("about the digest of a manifest is refused", async () => {
    const registry = await FakeRegistry.start();
    const image = await anImage();
    registry.push(image);
    registry.intercept = (request, response) => {
      if (request.url?.includes("/manifests/") !== true) return false;
      response.writeHead(200, { "content-type": OCI_MANIFEST }).end(`${image.manifest.toString()} `);
      return true;
    };
    await expectRefused(await openLibrary(registry), `team/tool@${image.digest}`, /its manifest has the digest/);
  });

  it("about the digest of a config is refused", async () => {
    const registry = await FakeRegistry.start();
    const image = await anImage();
    const name = registry.push(image);
    const [config = ""] = image.blobs.keys();
    registry.putBlob(config, Buffer.from(image.blobs.get(config)!.toString().replace("linux", "linuX")));
    await expectRefused(await openLibrary(registry), name, /has another digest/);
  });

  it("about the digest of a layer is refused, and nothing of it is kept", async () => {
    const registry = await FakeRegistry.start();
    const image = await anImage();
    const name = registry.push(image);
    const layer = image.layers[0]!.bytes;
    const other = Buffer.from(layer);
    other[other.length - 2000] = 1;
    registry.putBlob(digestOf(layer), other);
    const folder = await temporaryFolder();
    const library = await openLibrary(registry, { folder });
    await expectRefused(library, name, /has the digest/);
    expect(await readdir(join(folder, "downloads"))).toEqual([]);
    registry.putBlob(digestOf(layer), layer);
    await library.use(name);
  });

  it("about the content that the config promises is refused", async () => {
    const registry = await FakeRegistry.start();
    const layer = { ...(await madeLayer([{ name: "data", content: "x" }])), diffId: digestOf(Buffer.from("else")) };
    const folder = await temporaryFolder();
    await expectRefused(
      await openLibrary(registry, { folder }),
      registry.push(madeImage([layer])),
      /a layer has the content/,
    );
    expect(await readdir(join(folder, "layers"))).toEqual([]);
  });

  it("about sizes is refused: more than promised is not read", async () => {
    const registry = await FakeRegistry.start();
    const image = await anImage();
    const name = registry.push(image);
    let sent = 0;
    registry.answerBlob = (request, response, bytes) => {
      if (bytes.length < 10_000) return answerRange(request, response, bytes);
      response.writeHead(200);
      const send = (error?: Error | null): void => {
        if (error != null || request.destroyed) return;
        sent += 65_536;
        response.write(Buffer.alloc(65_536), send);
      };
      return send();
    };
    await expectRefused(await openLibrary(registry), name, /is larger than the .* bytes that the manifest promises/);
    expect(sent).toBeLessThan(20_000_000);
  });

  it("or has a layer that is too large is refused before the download", async () => {
    const registry = await FakeRegistry.start();
    const name = registry.push(await anImage());
    await expectRefused(
      await openLibrary(registry, { limits: { unpackedBytes: 300_000 } }),
      name,
      /300000 are allowed/,
    );
    expect(registry.blobRequests()).toEqual([]);
  });

  it("about the number of layers is refused", async () => {
    const registry = await FakeRegistry.start();
    const image = await anImage();
    const manifest = JSON.parse(image.manifest.toString()) as { layers: unknown[] };
    manifest.layers.push(...manifest.layers);
    registry.push(image);
    registry.putManifest(Buffer.from(JSON.stringify(manifest)), OCI_MANIFEST, "team/tool", "1");
    await expectRefused(await openLibrary(registry), "team/tool:1", /its config lists 1 layers, its manifest 2/);
  });

  it.each([
    ["an endless manifest", Buffer.alloc(5 * 1024 * 1024, " "), /larger than/],
    ["no JSON", Buffer.from("<html>"), /is not JSON/],
    ["another document", Buffer.from("[1]"), /is not valid/],
    ["an old manifest", Buffer.from('{"schemaVersion":1}'), /schema 1/],
    [
      "a digest that is a path",
      Buffer.from('{"config":{"digest":"sha256:../../x","size":1},"layers":[]}'),
      /is not valid/,
    ],
    [
      "a negative size",
      Buffer.from(`{"config":{"digest":"sha256:${"0".repeat(64)}","size":-1},"layers":[]}`),
      /not valid/,
    ],
  ])("with %s is refused", async (_, bytes, why) => {
    const registry = await FakeRegistry.start();
    registry.putManifest(bytes, OCI_MANIFEST, "team/tool", "1");
    await expectRefused(await openLibrary(registry), "team/tool:1", why);
  });

  it("an index that leads to itself is refused", async () => {
    const registry = await FakeRegistry.start();
    const inner = Buffer.from(JSON.stringify({ manifests: [{ digest: `sha256:${"1".repeat(64)}`, size: 1 }] }));
    registry.putManifest(inner, OCI_MANIFEST, "team/tool", "inner");
    const outer = Buffer.from(JSON.stringify({ manifests: [{ digest: digestOf(inner), size: inner.length }] }));
    registry.putManifest(outer, OCI_MANIFEST, "team/tool", "1");
    await expectRefused(await openLibrary(registry), "team/tool:1", /leads to another index/);
  });
});

describe("a registry that misbehaves", () => {
  it("and redirects forever is refused", async () => {
    const registry = await FakeRegistry.start();
    registry.intercept = (request, response) => {
      response.writeHead(307, { location: `${request.url}x` }).end();
      return true;
    };
    await expectRefused(await openLibrary(registry), "team/tool:1", /redirects more than 5 times/);
    expect(registry.requests).toHaveLength(6);
  });

  it("and redirects to a file or another scheme is refused", async () => {
    const registry = await FakeRegistry.start();
    registry.intercept = (_, response) => {
      response.writeHead(307, { location: "file:///etc/passwd" }).end();
      return true;
    };
    await expectRefused(await openLibrary(registry), "team/tool:1", /an address that is not safe/);
  });

  it("does not get the key of another one by a redirect", async () => {
    const [registry, other] = [await FakeRegistry.start(), await FakeRegistry.start()];
    const image = await anImage();
    const name = registry.push(image);
    other.push(image);
    const seen: (string | undefined)[] = [];
    other.intercept = (request) => {
      seen.push(request.headers.authorization);
      return false;
    };
    registry.intercept = (request, response) => {
      if (request.headers.authorization === undefined) {
        response.writeHead(401, { "www-authenticate": "Basic" }).end();
        return true;
      }
      if (request.url?.includes("/blobs/") !== true) return false;
      response.writeHead(307, { location: `http://${other.host}${request.url}` }).end();
      return true;
    };
    const secrets = { resolve: async () => ({ reveal: () => "robot:hunter2" }) as never };
    const credentials = { secretNames: new Map([[registry.host, "x"]]), secrets, searchPath: "" };
    await (await openLibrary(registry, { registries: { credentials } })).use(name);
    expect(seen.length).toBeGreaterThan(0);
    expect(seen.every((header) => header === undefined)).toBe(true);
  });

  it("and cuts every connection still serves the image: each connection continues the last", async () => {
    const registry = await FakeRegistry.start();
    const image = await anImage();
    const name = registry.push(image);
    registry.answerBlob = answerPart;
    const { path } = await (await openLibrary(registry)).use(name);
    expect(
      createHash("sha256")
        .update(await readFile(join(path, "data")))
        .digest("hex"),
    ).toBe(createHash("sha256").update(CONTENT).digest("hex"));
    expect(registry.requests.some((line) => /bytes=[1-9]/.test(line))).toBe(true);
  });

  it("and cuts every connection loses nothing that arrived while a slow disk prepared the file", async () => {
    await using file = await open(join(await temporaryFolder(), "file"), "w");
    // What arrives while a download waits for the disk is lost with the connection.
    const slow = vi.spyOn(Object.getPrototypeOf(file) as FileHandle, "truncate").mockReturnValue(new Promise(() => {}));
    onTestFinished(() => slow.mockRestore());
    const registry = await FakeRegistry.start();
    const image = await anImage();
    registry.answerBlob = answerPart;
    const { path } = await (await openLibrary(registry)).use(registry.push(image));
    expect(await readFile(join(path, "data"))).toEqual(CONTENT);
  });

  it("and cuts connections at once fails, and a later pull continues with the received part", async () => {
    const registry = await FakeRegistry.start();
    const image = await anImage();
    const name = registry.push(image);
    let isFirst = true;
    registry.answerBlob = (request, response, bytes) => {
      if (bytes.length < 10_000) return answerRange(request, response, bytes);
      if (!isFirst) return void response.destroy();
      isFirst = false;
      response.writeHead(200, { "content-length": bytes.length });
      response.write(bytes.subarray(0, 200_000), () => setImmediate(() => response.destroy()));
      return undefined;
    };
    const library = await openLibrary(registry);
    await expect(library.use(name)).rejects.toMatchObject({ code: "registry_unavailable" });
    registry.answerBlob = answerRange;
    const asked = registry.requests.length;
    await library.use(name);
    expect(registry.requests.slice(asked).some((line) => /bytes=[1-9]/.test(line))).toBe(true);
  });

  it("and ignores ranges starts again from the beginning", async () => {
    const registry = await FakeRegistry.start();
    const name = registry.push(await anImage());
    let cuts = 2;
    registry.answerBlob = (_, response, bytes) => {
      response.writeHead(200, { "content-length": bytes.length });
      if (bytes.length < 10_000 || cuts-- <= 0) return void response.end(bytes);
      response.write(bytes.subarray(0, 50_000), () => setImmediate(() => response.destroy()));
      return undefined;
    };
    expect(await readFile(join((await (await openLibrary(registry)).use(name)).path, "data"))).toEqual(CONTENT);
  });

  it("and falls silent is given up", async () => {
    const registry = await FakeRegistry.start();
    registry.intercept = () => true;
    const library = await openLibrary(registry, { registries: { silenceMs: 50 } });
    await expect(library.use("team/tool:1")).rejects.toMatchObject({ code: "registry_unavailable" });
  });

  it("and asks for the password in plain text gets none", async () => {
    const registry = await FakeRegistry.start();
    registry.intercept = (_, response) => {
      response.writeHead(401, { "www-authenticate": 'Bearer realm="not a url"' }).end();
      return true;
    };
    await expect((await openLibrary(registry)).use("team/tool:1")).rejects.toMatchObject({ code: "image_not_found" });
  });
});
