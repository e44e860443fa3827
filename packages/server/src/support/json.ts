/** The value that bytes or a text stand for; undefined for what is no JSON. */
export function jsonOf(source: Uint8Array | string): unknown {
  try {
    return JSON.parse(typeof source === "string" ? source : Buffer.from(source).toString("utf8"));
  } catch {
    return undefined;
  }
}
