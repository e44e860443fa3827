import { BLOCK_BYTES, type TarEntry } from "./entry.ts";

const TYPE_FLAGS = { file: "0", symlink: "2", folder: "5" } as const;
const PAX_FLAG = "x";
const MAX_OCTAL_SIZE = 8 ** 11;
const encoder = new TextEncoder();

/** The header blocks of an entry: ustar, preceded by a pax header for what ustar cannot hold. */
export function encodeHeader(entry: TarEntry): Uint8Array {
  const name = entry.kind === "folder" ? `${entry.name}/` : entry.name;
  const extended = extendedFields(entry, name);
  const plain = plainHeader(entry, name, TYPE_FLAGS[entry.kind], entry.sizeBytes);
  if (extended.length === 0) return plain;
  const body = concatenate(extended.map(([key, value]) => paxRecord(key, value)));
  const header = plainHeader({ ...entry, mode: 0o644 }, "pax", PAX_FLAG, body.length);
  return concatenate([header, body, padding(body.length), plain]);
}

/** Zeros up to the next block. */
export function padding(sizeBytes: number): Uint8Array {
  return new Uint8Array((BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES);
}

export function endOfTar(): Uint8Array {
  return new Uint8Array(2 * BLOCK_BYTES);
}

function extendedFields(entry: TarEntry, name: string): [string, string][] {
  return [
    ...(fits(name, 100) ? [] : [["path", name] as [string, string]]),
    ...(fits(entry.linkTarget ?? "", 100) ? [] : [["linkpath", entry.linkTarget ?? ""] as [string, string]]),
    ...(entry.sizeBytes < MAX_OCTAL_SIZE ? [] : [["size", String(entry.sizeBytes)] as [string, string]]),
  ];
}

function fits(text: string, bytes: number): boolean {
  return text.length <= bytes && /^[\x20-\x7e]*$/.test(text);
}

function plainHeader(entry: TarEntry, name: string, typeFlag: string, sizeBytes: number): Uint8Array {
  const block = new Uint8Array(BLOCK_BYTES);
  const put = (offset: number, length: number, text: string): void =>
    block.set(encoder.encode(text).subarray(0, length), offset);
  const octal = (offset: number, length: number, value: number): void =>
    put(
      offset,
      length,
      `${Math.max(0, Math.floor(value))
        .toString(8)
        .padStart(length - 1, "0")}\0`,
    );
  put(0, 100, name);
  octal(100, 8, entry.mode & 0o7777);
  octal(108, 8, 0);
  octal(116, 8, 0);
  octal(124, 12, sizeBytes < MAX_OCTAL_SIZE ? sizeBytes : 0);
  octal(136, 12, entry.modifiedAtMs / 1000);
  put(148, 8, "        ");
  put(156, 1, typeFlag);
  put(157, 100, typeFlag === TYPE_FLAGS.symlink ? (entry.linkTarget ?? "") : "");
  put(257, 8, "ustar\x0000");
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(148, 8, `${sum.toString(8).padStart(6, "0")}\0 `);
  return block;
}

/** A record counts its own length, including the digits of that length. */
function paxRecord(key: string, value: string): Uint8Array {
  const rest = ` ${key}=${value}\n`;
  const restBytes = encoder.encode(rest).length;
  let length = restBytes;
  while (length !== restBytes + String(length).length) length = restBytes + String(length).length;
  return encoder.encode(`${length}${rest}`);
}

function concatenate(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((total, { length }) => total + length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}
