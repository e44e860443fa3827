import type { OutputChunk } from "./frames.ts";

export interface CollectedOutput {
  readonly stdout: string;
  readonly stderr: string;
  /** There was more output than `maxOutputBytes`; the rest was read and dropped. */
  readonly truncated: boolean;
}

/** As large as a server collects when it is not told otherwise. */
export const MAX_OUTPUT_BYTES = 10 * 1024 * 1024;

/** Reads everything, as text. Bytes that are no UTF-8 are replaced. */
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
