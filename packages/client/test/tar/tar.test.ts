import { buffer } from "node:stream/consumers";
import { Readable } from "node:stream";
import fc from "fast-check";
import { expect, test } from "vitest";
import tarStream from "tar-stream";
import { ByteReader } from "../../src/tar/byte-reader.ts";
import { decodeHeader, paddingOf } from "../../src/tar/decode.ts";
import { encodeHeader, endOfTar, padding } from "../../src/tar/encode.ts";
import type { TarEntry } from "../../src/tar/entry.ts";

interface Filed {
  readonly entry: TarEntry;
  readonly contents: Uint8Array;
}

const name = fc
  .array(
    fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 }).map((part) => part.replaceAll(/[/\0\r\n.]/g, "_")),
    {
      minLength: 1,
      maxLength: 5,
    },
  )
  .map((parts) => parts.join("/"));
const common = { name, mode: fc.integer({ min: 0, max: 0o7777 }), seconds: fc.integer({ min: 0, max: 2 ** 32 }) };
const filed: fc.Arbitrary<Filed> = fc
  .record({
    ...common,
    kind: fc.constantFrom("file", "folder", "symlink"),
    contents: fc.uint8Array({ maxLength: 1500 }),
    linkTarget: name,
  })
  .map(({ name, mode, seconds, kind, contents, linkTarget }) => ({
    entry: {
      name,
      mode,
      kind,
      modifiedAtMs: seconds * 1000,
      sizeBytes: kind === "file" ? contents.length : 0,
      ...(kind === "symlink" ? { linkTarget } : {}),
    },
    contents: kind === "file" ? contents : new Uint8Array(),
  }));

function pack(files: readonly Filed[]): Buffer {
  const parts = files.flatMap(({ entry, contents }) => [encodeHeader(entry), contents, padding(contents.length)]);
  return Buffer.concat([...parts, endOfTar()]);
}

async function unpack(tar: Uint8Array, pieceBytes: number): Promise<Filed[]> {
  const pieces = Array.from({ length: Math.ceil(tar.length / pieceBytes) }, (_, index) =>
    tar.subarray(index * pieceBytes, (index + 1) * pieceBytes),
  );
  const reader = new ByteReader(ReadableStream.from(pieces));
  const found: Filed[] = [];
  for (let entry = await decodeHeader(reader); entry !== undefined; entry = await decodeHeader(reader)) {
    const contents = (await reader.exactly(entry.sizeBytes)) ?? new Uint8Array();
    await reader.skip(paddingOf(entry.sizeBytes));
    found.push({ entry: entry as TarEntry, contents });
  }
  return found;
}

test("packed files are unpacked unchanged, however the bytes are cut", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(filed, { maxLength: 6 }),
      fc.integer({ min: 1, max: 2000 }),
      async (files, pieceBytes) => {
        expect(await unpack(pack(files), pieceBytes)).toEqual(files);
      },
    ),
  );
});

test("another tar reads what this one packs", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(filed, { maxLength: 6 }), async (files) => {
      const found: unknown[] = [];
      const extract = tarStream.extract();
      Readable.from([pack(files)]).pipe(extract);
      for await (const item of extract) {
        const { name, mode, type, mtime, linkname, size } = item.header;
        found.push([name.replace(/\/$/, ""), mode, type, mtime?.getTime(), linkname ?? undefined, size]);
        expect(await buffer(item)).toHaveLength(size ?? 0);
      }
      const types = { file: "file", folder: "directory", symlink: "symlink" };
      expect(found).toEqual(
        files.map(({ entry }) => [
          entry.name,
          entry.mode,
          types[entry.kind],
          entry.modifiedAtMs,
          entry.linkTarget,
          entry.sizeBytes,
        ]),
      );
    }),
  );
});

test("this one reads what another tar packs", async () => {
  const pack = tarStream.pack();
  const long = `${"folder/".repeat(30)}näme`;
  pack.entry({ name: long, mode: 0o640, mtime: new Date(5000) }, "contents");
  pack.entry({ name: "link", type: "symlink", linkname: long });
  pack.entry({ name: "device", type: "character-device" });
  pack.finalize();
  const found = await unpack(await buffer(pack), 100);
  expect(found.map(({ entry }) => [entry.name, entry.kind, entry.linkTarget])).toEqual([
    [long, "file", undefined],
    ["link", "symlink", long],
    ["device", "other", undefined],
  ]);
  expect(found[0]).toMatchObject({
    entry: { mode: 0o640, modifiedAtMs: 5000 },
    contents: new TextEncoder().encode("contents"),
  });
});

test("input that is not a tar, or is truncated, is an error", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 3000 }), async (bytes) => {
      fc.pre(bytes.some((byte) => byte !== 0));
      await expect(unpack(bytes, 512)).rejects.toThrow(/tar/);
    }),
  );
  const whole = pack([
    { entry: { name: "a", kind: "file", mode: 0o644, modifiedAtMs: 0, sizeBytes: 900 }, contents: new Uint8Array(900) },
  ]);
  await expect(unpack(whole.subarray(0, 1000), 512)).rejects.toThrow("The tar archive is incomplete");
});
