/** Parses JSON from bytes or text; undefined if it is invalid. */
export function jsonOf(source: Uint8Array | string): unknown {
  try {
    return JSON.parse(typeof source === "string" ? source : Buffer.from(source).toString("utf8"));
  } catch {
    return undefined;
  }
}
