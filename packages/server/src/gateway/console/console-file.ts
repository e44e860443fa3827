import { createReadStream } from "node:fs";
import { lstat } from "node:fs/promises";
import { extname, join } from "node:path";
import type { Readable } from "node:stream";

/** A file of the built console or documentation, in the form that the client can read. */
export interface ConsoleFile {
  readonly contentType: string;
  readonly sizeBytes: number;
  /** Undefined: no encoding. */
  readonly encoding: "br" | "gzip" | undefined;
  readonly etag: string;
  open(): Readable;
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".map": "application/json",
  ".webmanifest": "application/manifest+json",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".woff2": "font/woff2",
  ".txt": "text/plain; charset=utf-8",
};

/** Only plain names: no part begins with a dot, so that none leads outside the folder or to a hidden file. */
const PLAIN_PATH = /^(\/[A-Za-z0-9@_-][A-Za-z0-9._-]*)+$/;

/** Compressed variants that the build may put beside a file, in order of preference. */
const ENCODINGS = [
  { encoding: "br", suffix: ".br" },
  { encoding: "gzip", suffix: ".gz" },
] as const;

/** Undefined if the folder has no such file. `path` and `acceptEncoding` come unchanged from the request. */
export async function findConsoleFile(
  folder: string,
  path: string,
  acceptEncoding: string | undefined,
): Promise<ConsoleFile | undefined> {
  if (!PLAIN_PATH.test(path)) return undefined;
  const contentType = CONTENT_TYPES[extname(path)];
  if (contentType === undefined) return undefined;
  const plain = join(folder, path);
  if ((await sizeAndTime(plain)) === undefined) return undefined;
  for (const { encoding, suffix } of ENCODINGS) {
    if (!accepts(acceptEncoding, encoding)) continue;
    const found = await describe(plain + suffix, contentType, encoding);
    if (found !== undefined) return found;
  }
  return describe(plain, contentType, undefined);
}

async function describe(
  path: string,
  contentType: string,
  encoding: ConsoleFile["encoding"],
): Promise<ConsoleFile | undefined> {
  const found = await sizeAndTime(path);
  if (found === undefined) return undefined;
  const { size, mtimeMs } = found;
  const etag = `"${size.toString(16)}-${Math.floor(mtimeMs).toString(16)}${encoding === undefined ? "" : `-${encoding}`}"`;
  // Bytes appended to the file meanwhile would exceed the announced length.
  const open = (): Readable => createReadStream(path, { end: Math.max(0, size - 1) });
  return { contentType, sizeBytes: size, encoding, etag, open };
}

/** Links are not followed. */
async function sizeAndTime(path: string): Promise<{ size: number; mtimeMs: number } | undefined> {
  const found = await lstat(path).catch(() => undefined);
  return found?.isFile() === true ? found : undefined;
}

function accepts(acceptEncoding: string | undefined, encoding: string): boolean {
  const offers = (acceptEncoding ?? "").toLowerCase().split(",");
  return offers.some((offer) => {
    const [name, weight] = offer.split(";").map((part) => part.trim());
    return name === encoding && !/^q=0(\.0*)?$/.test(weight ?? "");
  });
}
