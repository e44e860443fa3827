import type { OutputChunk } from "./frames.ts";

export interface CollectedOutput {
  readonly stdout: string;
  readonly stderr: string;
  /** There was more output than `maxOutputBytes`; the rest was read and dropped. */
  readonly truncated: boolean;
}

/** The server's default limit. */
export const MAX_OUTPUT_BYTES = 10 * 1024 * 1024;

/** Reads everything, as text. Invalid UTF-8 is replaced. */
export async function collect(chunks: AsyncIterable<OutputChunk>, maxOutputBytes: number): Promise<CollectedOutput> {
  const texts = { stdout: "", stderr: "" };
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  let room = maxOutputBytes;
  let truncated = false;
  for await (const { stream, data } of chunks) {
    truncated ||= data.length > room;
    const kept = data.subarray(0, room);
    room -= kept.length;
    texts[stream] += decoders[stream].decode(kept, { stream: true });
  }
  return {
    stdout: texts.stdout + decoders.stdout.decode(),
    stderr: texts.stderr + decoders.stderr.decode(),
    truncated,
  };
}
