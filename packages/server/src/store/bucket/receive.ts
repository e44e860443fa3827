import type { ByteRange } from "./bucket-api.ts";
import { BucketError } from "./bucket-error.ts";

const IDLE_LIMIT_MS = 30_000;

/**
 * The bytes of a response. Fails as unclear if the connection breaks or ends early, or if no bytes arrive for a while:
 * a connection may die silently. The consumer may be slow. `close` is called at the end.
 */
export async function* receive(
  body: AsyncIterable<Uint8Array>,
  expectedBytes: number | undefined,
  close: (reason: Error) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  const startTimer = (): NodeJS.Timeout =>
    setTimeout(() => close(new Error(`no bytes for ${IDLE_LIMIT_MS / 1000} s`)), IDLE_LIMIT_MS);
  let timer = startTimer();
  let receivedBytes = 0;
  try {
    for await (const piece of body) {
      clearTimeout(timer);
      receivedBytes += piece.byteLength;
      yield piece;
      timer = startTimer();
    }
  } catch (error) {
    throw new BucketError(
      { kind: "unclear", reached: true },
      `the connection broke: ${(error as Error).message}`,
      error,
    );
  } finally {
    clearTimeout(timer);
    close(new Error("it has been read"));
  }
  if (expectedBytes !== undefined && receivedBytes < expectedBytes) {
    throw new BucketError({ kind: "unclear", reached: true }, "the connection ended early.");
  }
}

/** For a range beyond the end. */
export async function* receiveNothing(): AsyncGenerator<Uint8Array, void, undefined> {}

/** HTTP's ranges name their last byte. Undefined for the whole. */
export function rangeHeader({ start, end }: ByteRange): string | undefined {
  if (start === 0 && end === undefined) return undefined;
  return `bytes=${start}-${end === undefined ? "" : end - 1}`;
}
