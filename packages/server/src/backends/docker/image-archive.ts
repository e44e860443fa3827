import { Buffer } from "node:buffer";
import { open, type FileHandle } from "node:fs/promises";
import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";

const BLOCK_BYTES = 512;
const MAX_INDEX_BYTES = 4 * 1024 * 1024;
const MANIFEST = "manifest.json";
const INDEX = "index.json";

const Manifest = z.array(z.object({ RepoTags: z.array(z.string()).nullish() }));
const Index = z.object({
  manifests: z.array(z.object({ annotations: z.record(z.string(), z.string()).nullish() })).nullish(),
});

/**
 * Refuses an archive of `docker save` with other names than the expected one: loading it would move those names to
 * images of its maker. Only headers and the two indexes are read.
 */
export async function checkImageArchive(path: string, name: string): Promise<void> {
  const texts = await readIndexes(path);
  const names = namesIn(texts);
  if (names.length > 0 && names.every((found) => found === name || found === `docker.io/library/${name}`)) return;
  throw damaged(names.length === 0 ? "it names no image" : `it names ${names.join(", ")} instead of ${name}`);
}

function namesIn(texts: ReadonlyMap<string, string>): string[] {
  try {
    const manifest = Manifest.parse(JSON.parse(texts.get(MANIFEST) ?? "[]"));
    const index = Index.parse(JSON.parse(texts.get(INDEX) ?? "{}"));
    const annotated = (index.manifests ?? []).map((entry) => entry.annotations?.["io.containerd.image.name"]);
    return [...manifest.flatMap(({ RepoTags }) => RepoTags ?? []), ...annotated.filter((text) => text !== undefined)];
  } catch {
    throw damaged("its index cannot be read");
  }
}

async function readIndexes(path: string): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  const file = await open(path);
  try {
    const { size } = await file.stat();
    for (let at = 0; at + BLOCK_BYTES <= size;) {
      const header = await readAt(file, at, BLOCK_BYTES);
      at += BLOCK_BYTES;
      if (header.every((byte) => byte === 0)) break;
      const bytes = sizeOf(header);
      if (bytes > size - at) throw damaged("it is truncated");
      const name = header.toString("utf8", 0, 100).replace(/\0.*$/s, "");
      if (name === MANIFEST || name === INDEX) {
        // The last one would win.
        if (bytes > MAX_INDEX_BYTES || texts.has(name)) throw damaged(`its ${name} cannot be used`);
        texts.set(name, (await readAt(file, at, bytes)).toString("utf8"));
      }
      at += Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES;
    }
  } finally {
    await file.close();
  }
  return texts;
}

/** Octal digits, or, above 8 GiB, a number with its first bit set. */
function sizeOf(header: Buffer): number {
  const field = header.subarray(124, 136);
  if ((field[0] ?? 0) & 0x80) return Number(field.readBigUInt64BE(4));
  const text = field
    .toString("latin1")
    .replace(/[\0 ]+$/, "")
    .trim();
  if (!/^[0-7]*$/.test(text)) throw damaged("it is not a tar archive");
  return Number.parseInt(text || "0", 8);
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  const { bytesRead } = await file.read(buffer, 0, length, position);
  if (bytesRead !== length) throw damaged("it is truncated");
  return buffer;
}

function damaged(why: string): SandboxerError {
  return new SandboxerError("image_damaged", `The snapshot's Docker image cannot be loaded: ${why}.`);
}
