import { SandboxerError } from "@sandboxer/protocol/errors";
import type { ByteReader } from "./byte-reader.ts";
import { BLOCK_BYTES, type TarEntry } from "./entry.ts";

/** A pax header may be long, but not unlimited. */
const MAX_EXTENDED_BYTES = 1024 * 1024;
const decoder = new TextDecoder();

/** Entries that are not files, folders or symbolic links, such as devices. */
export type UnknownEntry = Omit<TarEntry, "kind"> & { readonly kind: "other" };

/** The next entry, whose contents then follow in the reader; undefined at the end. */
export async function decodeHeader(reader: ByteReader): Promise<TarEntry | UnknownEntry | undefined> {
  let extended: Record<string, string> = {};
  for (;;) {
    const block = await reader.exactly(BLOCK_BYTES);
    if (block === undefined || block.every((byte) => byte === 0)) return undefined;
    checkSum(block);
    const typeFlag = String.fromCodePoint(block[156] ?? 0);
    const sizeBytes = octal(block, 124, 12);
    if (typeFlag === "x" || typeFlag === "g" || typeFlag === "L" || typeFlag === "K") {
      if (sizeBytes > MAX_EXTENDED_BYTES) throw malformed("an extended header is too long");
      const body = (await reader.exactly(sizeBytes)) ?? new Uint8Array();
      await reader.skip(paddingOf(sizeBytes));
      if (typeFlag === "x") extended = { ...extended, ...paxFields(body) };
      if (typeFlag === "L") extended = { ...extended, path: text(body, 0, body.length) };
      if (typeFlag === "K") extended = { ...extended, linkpath: text(body, 0, body.length) };
    } else return entryOf(block, typeFlag, sizeBytes, extended);
  }
}

export function paddingOf(sizeBytes: number): number {
  return (BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES;
}

function entryOf(
  block: Uint8Array,
  typeFlag: string,
  plainSize: number,
  extended: Readonly<Record<string, string>>,
): TarEntry | UnknownEntry {
  const prefix = text(block, 345, 155);
  const plainName = text(block, 0, 100);
  const name = extended["path"] ?? (prefix === "" ? plainName : `${prefix}/${plainName}`);
  const sizeBytes = extended["size"] === undefined ? plainSize : Number(extended["size"]);
  if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0) throw malformed("invalid size");
  const kind = kindOf(typeFlag, name);
  const seconds = extended["mtime"] === undefined ? octal(block, 136, 12) : Number(extended["mtime"]);
  return {
    name: name.replace(/\/+$/, ""),
    kind,
    mode: octal(block, 100, 8) & 0o7777,
    modifiedAtMs: seconds * 1000,
    sizeBytes: kind === "folder" || kind === "symlink" ? 0 : sizeBytes,
    ...(kind === "symlink" ? { linkTarget: extended["linkpath"] ?? text(block, 157, 100) } : {}),
  };
}

function kindOf(typeFlag: string, name: string): TarEntry["kind"] | "other" {
  if (typeFlag === "5") return "folder";
  if (typeFlag === "2") return "symlink";
  if (typeFlag !== "0" && typeFlag !== "\0" && typeFlag !== "7") return "other";
  return name.endsWith("/") ? "folder" : "file";
}

function paxFields(body: Uint8Array): Record<string, string> {
  const fields: Record<string, string> = {};
  for (let rest = body; rest.length > 0;) {
    const length = Number(/^(\d{1,7}) /.exec(decoder.decode(rest.subarray(0, 8)))?.[1] ?? 0);
    const record = decoder.decode(rest.subarray(0, length));
    const [, key, value] = /^\d+ ([^=]+)=([\s\S]*)\n$/.exec(record) ?? [];
    if (key === undefined || value === undefined) throw malformed("invalid pax header");
    fields[key] = value;
    rest = rest.subarray(length);
  }
  return fields;
}

/** Octal digits; or, with the highest bit set, a binary number for larger values. */
function octal(block: Uint8Array, offset: number, length: number): number {
  if (((block[offset] ?? 0) & 0x80) !== 0) {
    return block.subarray(offset + 1, offset + length).reduce((value, byte) => value * 256 + byte, 0);
  }
  const digits = text(block, offset, length).trim();
  if (!/^[0-7]*$/.test(digits)) throw malformed("invalid number");
  return digits === "" ? 0 : Number.parseInt(digits, 8);
}

function text(block: Uint8Array, offset: number, length: number): string {
  const field = block.subarray(offset, offset + length);
  const end = field.indexOf(0);
  return decoder.decode(end === -1 ? field : field.subarray(0, end));
}

function checkSum(block: Uint8Array): void {
  const sum = block.reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 32 : byte), 0);
  if (sum !== octal(block, 148, 8)) throw malformed("wrong checksum");
}

function malformed(what: string): SandboxerError {
  return new SandboxerError("bad_request", `This is not a valid tar archive: ${what}.`);
}
