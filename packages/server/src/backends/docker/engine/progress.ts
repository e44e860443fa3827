import type { Readable } from "node:stream";
import { createInterface } from "node:readline";
import { ProgressLine } from "./answers.ts";
import { unexpected } from "./engine-errors.ts";

/** What the engine says while it gets, loads or imports an image: one JSON object in each line. */
export async function followProgress(
  answer: Readable,
  what: string,
): Promise<{ readonly lines: string[]; readonly error: string | undefined }> {
  const lines: string[] = [];
  let error: string | undefined;
  for await (const text of createInterface({ input: answer })) {
    if (text.trim() === "") continue;
    const line = parse(text, what);
    error ??= line.error;
    // A long pull repeats its status; the result of a load is a stream line.
    if (line.stream !== undefined) lines.push(line.stream.trim());
  }
  return { lines, error };
}

function parse(text: string, what: string): ProgressLine {
  try {
    return ProgressLine.parse(JSON.parse(text));
  } catch (cause) {
    throw unexpected(what, cause);
  }
}
