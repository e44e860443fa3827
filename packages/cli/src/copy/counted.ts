import type { ProgressLine } from "../output/progress.ts";

/** Passes bytes on, and shows how many they are. */
export async function* counted(
  bytes: AsyncIterable<Uint8Array>,
  line: ProgressLine,
  what: string,
  totalBytes: number | null,
): AsyncGenerator<Uint8Array, void, undefined> {
  const startMs = performance.now();
  let doneBytes = 0;
  for await (const piece of bytes) {
    yield piece;
    doneBytes += piece.length;
    line.show({ what, doneBytes, totalBytes, elapsedMs: performance.now() - startMs });
  }
}
