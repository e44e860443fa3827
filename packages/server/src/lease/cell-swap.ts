import type { Clock } from "../support/clock.ts";
import { type Cell, type ObjectStore, trySwap } from "../store/store.ts";

const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 2_000;

export type SettledSwap =
  /** The current content: what was written, or something later that came from it. */
  | { readonly outcome: "written"; readonly present: Cell }
  /** The current content instead; undefined if the cell is absent. */
  | { readonly outcome: "conflict"; readonly found: Cell | undefined };

export interface SwapRequest {
  readonly key: string;
  readonly expected: string | undefined;
  readonly body: Uint8Array;
  /** Whether a cell that was read is what this request wrote, or came after it. */
  readonly isOurs: (cell: Cell) => boolean;
  readonly signal?: AbortSignal;
}

/**
 * A swap whose outcome is always known. A conflict may be with our own write whose answer was lost, and an ambiguous
 * write may or may not be applied; reading again shows it, by the nonce. A write that was not applied is repeated with
 * the same bytes: if the lost one still arrives, it and the repetition exclude each other by the version. Retries until
 * the store answers, or until the signal.
 */
export async function settleSwap(store: ObjectStore, clock: Clock, request: SwapRequest): Promise<SettledSwap> {
  const { key, expected, body, signal } = request;
  for (let retryMs = FIRST_RETRY_MS; ; retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS)) {
    signal?.throwIfAborted();
    const result = await trySwap(store, key, expected, body);
    if (result.outcome === "written") return { outcome: "written", present: { body, version: result.version } };
    const found = await readUntilAnswered(store, clock, key, signal);
    if (found !== undefined && request.isOurs(found)) return { outcome: "written", present: found };
    if (found?.version !== expected) return { outcome: "conflict", found };
    await clock.sleep(retryMs, signal);
  }
}

async function readUntilAnswered(
  store: ObjectStore,
  clock: Clock,
  key: string,
  signal: AbortSignal | undefined,
): Promise<Cell | undefined> {
  for (let retryMs = FIRST_RETRY_MS; ; retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS)) {
    try {
      return await store.readCell(key);
    } catch {
      // Only the store knows the outcome of the write.
      await clock.sleep(retryMs, signal);
    }
  }
}
