import { Buffer } from "node:buffer";

/** A name or path of which each character is one byte, for people to read. */
export function readable(name: string): string {
  return toBytes(name).toString("utf8");
}

/** The bytes of a name or path of which each character is one. */
export function toBytes(name: string): Buffer {
  return Buffer.from(name, "latin1");
}
