import { createHash } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { pack } from "tar-stream";

export interface MadeEntry {
  readonly name: string;
  readonly type?: "file" | "directory" | "symlink" | "link" | "character-device" | "block-device" | "fifo";
  readonly content?: string | Buffer;
  readonly mode?: number;
  readonly uid?: number;
  readonly linkname?: string;
  readonly mtime?: Date;
  readonly pax?: Readonly<Record<string, string>>;
}

export type Packing = "gzip" | "zstd" | "none";

/** A layer of an image that a test makes. */
export interface MadeLayer {
  readonly diffId: string;
  readonly bytes: Buffer;
}

export interface MadeImage {
  readonly digest: string;
  readonly manifest: Buffer;
  /** Config and layers by digest. */
  readonly blobs: ReadonlyMap<string, Buffer>;
  readonly layers: readonly MadeLayer[];
}

export const OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json";
export const OCI_INDEX = "application/vnd.oci.image.index.v1+json";
export const THIS_ARCHITECTURE = process.arch === "x64" ? "amd64" : process.arch;
const PACKERS = { gzip: gzipSync, zstd: zstdCompressSync, none: (bytes: Buffer) => bytes };

export function digestOf(bytes: Buffer): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

export async function tarOf(entries: readonly MadeEntry[]): Promise<Buffer> {
  const archive = pack();
  for (const { content = "", ...header } of entries) {
    const isFile = (header.type ?? "file") === "file";
    archive.entry({ mtime: new Date(1_600_000_000_000), ...header }, isFile ? content : "");
  }
  archive.finalize();
  return buffer(archive);
}

export async function madeLayer(entries: readonly MadeEntry[], packing: Packing = "gzip"): Promise<MadeLayer> {
  return packedLayer(await tarOf(entries), packing);
}

export function packedLayer(tar: Buffer, packing: Packing = "gzip"): MadeLayer {
  return { diffId: digestOf(tar), bytes: PACKERS[packing](tar) };
}

/** An image of layers; `config` is merged into its config. */
export function madeImage(layers: readonly MadeLayer[], config: object = {}): MadeImage {
  const described = {
    architecture: THIS_ARCHITECTURE,
    os: "linux",
    config,
    rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
  };
  const configBytes = Buffer.from(JSON.stringify(described));
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: OCI_MANIFEST,
      config: {
        mediaType: "application/vnd.oci.image.config.v1+json",
        digest: digestOf(configBytes),
        size: configBytes.length,
      },
      layers: layers.map(({ bytes }) => ({
        mediaType: "application/vnd.oci.image.layer.v1.tar+gzip",
        digest: digestOf(bytes),
        size: bytes.length,
      })),
    }),
  );
  const blobs = new Map([configBytes, ...layers.map(({ bytes }) => bytes)].map((bytes) => [digestOf(bytes), bytes]));
  return { digest: digestOf(manifest), manifest, blobs, layers };
}
