import { Buffer } from "node:buffer";

/** A name or path with one character per byte, made readable for people. */
export function readable(name: string): string {
  return toBytes(name).toString("utf8");
}

/** The bytes of a name or path with one character per byte. */
export function toBytes(name: string): Buffer {
  return Buffer.from(name, "latin1");
}
