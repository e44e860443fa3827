/**
 * Inside the machine every string holds bytes, one a character (Latin-1), so that output which is no UTF-8 survives
 * variables, pipes and JSON. Text is turned into bytes where it enters (argv, environment) and back for file names.
 */
export const fromText = (text: string): string => Buffer.from(text, "utf8").toString("latin1");
export const toText = (bytes: string): string => Buffer.from(bytes, "latin1").toString("utf8");
export const toBytes = (bytes: string): Buffer => Buffer.from(bytes, "latin1");
export const fromBytes = (bytes: Uint8Array): string => Buffer.from(bytes).toString("latin1");

/** How many bytes of `bytes` can go without cutting a UTF-8 character at the end. */
export function completeLength(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const needed = byte >= 0xf5 ? 1 : byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1;
    return needed > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}
