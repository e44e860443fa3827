export interface ByteRange {
  readonly start: number;
  readonly length: number;
}

/** The one range of a `Range` header; undefined: it has none that is understood, and the whole file is sent. */
export function rangeOf(header: string, sizeBytes: number): ByteRange | "unsatisfiable" | undefined {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header.trim());
  if (match === null) return undefined;
  const [, first = "", last = ""] = match;
  if (first === "" && last === "") return undefined;
  const start = first === "" ? Math.max(0, sizeBytes - Number(last)) : Number(first);
  const end = first === "" || last === "" ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1);
  if (first !== "" && last !== "" && Number(last) < Number(first)) return undefined;
  return start > end ? "unsatisfiable" : { start, length: end - start + 1 };
}
