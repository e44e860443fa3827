import { Readable } from "node:stream";
import { SandboxerError, type ExecResult } from "@sandboxer/protocol";
import type { CollectedOutput } from "../../manager/processes/collect-output.ts";
import { StreamAnswer } from "./handler.ts";

const BUFFER_BYTES = 64 * 1024;
/** A longer response is sent in pieces, so that it is never in memory as text. */
export const WHOLE_BYTES = 64 * 1024;

/**
 * How often to check a client that reads its response while others wait for the memory, and how much it must have read.
 */
const LOOK_MS = 30_000;
const TAKEN_CHARACTERS = 1024 * 1024;

export interface SendOptions {
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** Whether others wait for the memory of the response. */
  readonly isWanted: () => boolean;
  readonly lookMs?: number;
}

/** The response of an exec with much output. Its memory is released as it is sent. */
export function sendOutput(
  result: Omit<ExecResult, "stdout" | "stderr">,
  output: CollectedOutput,
  options: SendOptions,
): StreamAnswer {
  return sendJson(pieces(result, output), () => output.release(), options);
}

/** A large response in pieces of JSON, whose whole text is never in memory. `release`: called when it is over. */
export function sendJson(
  texts: Iterable<string>,
  release: () => void,
  { signal, isWanted, lookMs = LOOK_MS }: SendOptions,
): StreamAnswer {
  let taken = 0;
  let seen = 0;
  const body = Readable.from(
    counted(texts, (characters) => (taken += characters)),
    { objectMode: false, highWaterMark: BUFFER_BYTES },
  );
  const look = setInterval(() => {
    if (isWanted() && taken - seen < TAKEN_CHARACTERS) {
      body.destroy(new SandboxerError("timeout", "The client read its response too slowly while others waited."));
    }
    seen = taken;
  }, lookMs);
  body.once("close", () => {
    clearInterval(look);
    release();
  });
  signal.addEventListener("abort", () => body.destroy(), { once: true });
  if (signal.aborted) body.destroy();
  return new StreamAnswer("application/json; charset=utf-8", body);
}

/** An {@link ExecResult} as JSON. */
function* pieces(
  result: Omit<ExecResult, "stdout" | "stderr">,
  { stdout, stderr }: CollectedOutput,
): Generator<string, void, undefined> {
  yield `${JSON.stringify(result).slice(0, -1)},"stdout":"`;
  for (const text of stdout.take(result.stdout_encoding)) yield JSON.stringify(text).slice(1, -1);
  yield '","stderr":"';
  for (const text of stderr.take(result.stderr_encoding)) yield JSON.stringify(text).slice(1, -1);
  yield '"}';
}

function* counted(texts: Iterable<string>, count: (characters: number) => void): Generator<string, void, undefined> {
  for (const text of texts) {
    count(text.length);
    yield text;
  }
}
