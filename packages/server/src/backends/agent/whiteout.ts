import { Buffer } from "node:buffer";
import { basename, dirname, join } from "node:path";

/** Marks a removed file of the root filesystem, as container layers do. */
const WHITEOUT = ".wh.";
const NO_NAME = /^\.{0,2}$|[/\0]/;
/** In the pax header of a file whose own name looks like a removal. */
export const LITERAL = "SANDBOXER.literal";
/** With its own length before it. */
export const LITERAL_RECORD = Buffer.from(`23 ${LITERAL}=1\n`);

export function isWhiteout(name: string): boolean {
  return name.startsWith(WHITEOUT);
}

/** The entry that marks a path as removed. */
export function whiteoutOf(path: string): string {
  return join(dirname(path), WHITEOUT + basename(path));
}

/** The path that an entry removes; undefined if it is not a valid name. */
export function removedBy(path: string): string | undefined {
  const name = basename(path).slice(WHITEOUT.length);
  return NO_NAME.test(name) ? undefined : join(dirname(path), name);
}
