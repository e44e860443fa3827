import { promisify } from "node:util";
import { zstdCompress, zstdDecompress } from "node:zlib";
import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import type { FileEntry } from "../../backends/backend.ts";

/** One file as it was. Two files that are equal in all of this count as the same. */
export interface ListedFile {
  readonly kind: FileEntry["kind"];
  readonly sizeBytes: number;
  readonly mode: number;
  readonly modifiedMs: number;
  readonly linkTarget: string | undefined;
}

/** The files of a sandbox below the folders that its user may write to, at one moment. */
export interface FileList {
  readonly files: ReadonlyMap<string, ListedFile>;
  /** The list is truncated. */
  readonly truncated: boolean;
}

const MAX_DECODED_BYTES = 256 * 1024 * 1024;
const LETTERS = { file: "f", folder: "d", symlink: "l", other: "o" } as const;
const KINDS: Readonly<Record<string, FileEntry["kind"]>> = { f: "file", d: "folder", l: "symlink", o: "other" };

const headSchema = z.looseObject({ format: z.literal(1), truncated: z.boolean() });
const lineSchema = z.tuple([
  z.string(),
  z.enum(["f", "d", "l", "o"]),
  z.number(),
  z.number(),
  z.number(),
  z.string().nullable(),
]);

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/** A line of JSON for the list, then one for each file, compressed as a whole. */
export async function encodeFileList({ files, truncated }: FileList): Promise<Uint8Array> {
  const lines = [JSON.stringify({ format: 1, truncated })];
  for (const [path, { kind, sizeBytes, mode, modifiedMs, linkTarget }] of files) {
    lines.push(JSON.stringify([path, LETTERS[kind], sizeBytes, mode, modifiedMs, linkTarget ?? null]));
  }
  return await compress(Buffer.from(lines.join("\n")));
}

export async function decodeFileList(encoded: Uint8Array): Promise<FileList> {
  try {
    const text = (await decompress(encoded, { maxOutputLength: MAX_DECODED_BYTES })).toString("utf8");
    const [first = "", ...lines] = text.split("\n");
    const { truncated } = headSchema.parse(JSON.parse(first));
    const files = new Map<string, ListedFile>();
    for (const line of lines) {
      const [path, letter, sizeBytes, mode, modifiedMs, target] = lineSchema.parse(JSON.parse(line));
      const kind = KINDS[letter] ?? "other";
      files.set(path, { kind, sizeBytes, mode, modifiedMs, linkTarget: target ?? undefined });
    }
    return { files, truncated };
  } catch (error) {
    throw new SandboxerError("image_damaged", "The snapshot's list of files cannot be read.", {
      cause: error,
      hint: "The snapshot can still be restored, but its files cannot be compared.",
    });
  }
}
