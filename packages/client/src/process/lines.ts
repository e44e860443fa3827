import type { OutputChunk } from "./frames.ts";

export interface OutputLine {
  readonly stream: OutputChunk["stream"];
  /** Without its line break. */
  readonly text: string;
}

/** Joins the chunks of both streams to lines, each stream separately; an unterminated rest is the last line. */
export async function* linesOf(chunks: AsyncIterable<OutputChunk>): AsyncGenerator<OutputLine, void, undefined> {
  const rest = { stdout: "", stderr: "" };
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  for await (const { stream, data } of chunks) {
    const lines = (rest[stream] + decoders[stream].decode(data, { stream: true })).split("\n");
    rest[stream] = lines.pop() ?? "";
    for (const text of lines) yield { stream, text: text.replace(/\r$/, "") };
  }
  for (const stream of ["stdout", "stderr"] as const) {
    const text = rest[stream] + decoders[stream].decode();
    if (text !== "") yield { stream, text };
  }
}
