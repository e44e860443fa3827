import type { Readable } from "node:stream";
import { createInterface } from "node:readline";
import { ProgressLine } from "./answers.ts";
import { unexpected } from "./engine-errors.ts";

/**
 * Follows the engine's progress while it pulls, loads or imports an image: one JSON object per line. Returns the first
 * error among them.
 */
export async function followProgress(answer: Readable, what: string): Promise<string | undefined> {
  let error: string | undefined;
  for await (const text of createInterface({ input: answer })) {
    if (text.trim() === "") continue;
    error ??= parse(text, what).error;
  }
  return error;
}

function parse(text: string, what: string): ProgressLine {
  try {
    return ProgressLine.parse(JSON.parse(text));
  } catch (cause) {
    throw unexpected(what, cause);
  }
}
