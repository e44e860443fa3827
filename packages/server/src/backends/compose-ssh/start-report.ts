import type { Readable } from "node:stream";
import { nextEvent } from "../../support/next-event.ts";

export type StartReport =
  | { readonly kind: "started"; readonly pid: number }
  | { readonly kind: "no-folder" }
  | { readonly kind: "no-program" }
  /** It ended without a report; this is what was said instead. */
  | { readonly kind: "silent"; readonly said: string };

const MAX_BYTES = 64 << 10;

/**
 * Waits for the line in which a starting process reports itself, and puts back what follows it. What comes before is
 * ssh's or Docker's talk, and not the program's.
 */
export async function readStart(stderr: Readable, nonce: string): Promise<StartReport> {
  const report = new RegExp(`\\n${nonce} (\\d+|no-folder|no-program)\\n`);
  let read = Buffer.alloc(0);
  for (;;) {
    const data: Buffer | null = stderr.read() as Buffer | null;
    if (data === null) {
      if (stderr.readableEnded || stderr.destroyed) return { kind: "silent", said: read.toString("utf8") };
      await nextEvent(stderr, ["readable", "end", "close", "error"]);
      continue;
    }
    read = Buffer.concat([read, data]);
    const match = report.exec(read.toString("latin1"));
    if (match !== null) {
      const rest = read.subarray(match.index + match[0].length);
      if (rest.length > 0) stderr.unshift(rest);
      const [, word = ""] = match;
      return word === "no-folder" || word === "no-program" ? { kind: word } : { kind: "started", pid: Number(word) };
    }
    if (read.length > MAX_BYTES) read = read.subarray(-MAX_BYTES);
  }
}
