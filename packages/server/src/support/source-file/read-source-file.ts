import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import type { SourceDocument } from "./source-document.ts";
import { readTomlDocument } from "./toml-document.ts";
import { readYamlDocument } from "./yaml-document.ts";

const MAX_BYTES = 1024 * 1024;

/** Reads a file by its extension: `.toml`, otherwise YAML. An unreadable file is a document with that problem. */
export function readSourceFile(file: string): SourceDocument {
  let text: string;
  try {
    text = readText(file);
  } catch (thrown) {
    return { file, value: undefined, problems: [{ file, message: reason(thrown) }], ...NOWHERE };
  }
  return file.endsWith(".toml") ? readTomlDocument(file, text) : readYamlDocument(file, text);
}

const NOWHERE = { positionOf: () => undefined, textOf: () => undefined };

function readText(file: string): string {
  // A pipe without a writer must not block everything.
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const status = fstatSync(descriptor);
    if (!status.isFile()) throw new Error("is not a file.");
    const bytes = Buffer.alloc(MAX_BYTES + 1);
    let length = 0;
    for (let count = -1; count !== 0; length += count)
      count = readSync(descriptor, bytes, length, bytes.length - length, null);
    if (length > MAX_BYTES) throw new Error(`is larger than ${MAX_BYTES} bytes.`);
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(0, length));
  } finally {
    closeSync(descriptor);
  }
}

function reason(thrown: unknown): string {
  const { code, message } = thrown as NodeJS.ErrnoException;
  if (code === "ENOENT") return "does not exist.";
  if (code === "EACCES" || code === "EPERM") return "cannot be read by this user.";
  if (code === "EISDIR") return "is a folder.";
  if (code === "ERR_ENCODING_INVALID_ENCODED_DATA") return "is not UTF-8.";
  return message;
}
