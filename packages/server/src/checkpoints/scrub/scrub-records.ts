import { z } from "zod";
import type { ObjectStore } from "../../store/store.ts";
import { changeCell } from "../snapshot-cell.ts";
import type { Nonced } from "../snapshot-record.ts";

const RECORD_KEY = "scrub/record.json";

const time = z.string();
const recordSchema = z.looseObject({
  format: z.literal(1),
  /** When a pass over the whole store was begun last, by its own account of a server; null: that one was stopped. */
  begun_at: time.nullable(),
  /** When the last one that came to its end had begun and ended, and what it found. */
  last: z
    .looseObject({
      started_at: time,
      ended_at: time,
      damaged_images: z.number().int().nonnegative(),
      damaged_blocks: z.number().int().nonnegative(),
      missing_packs: z.number().int().nonnegative(),
    })
    .nullable(),
  nonce: z.string(),
  history: z.array(z.string()),
});
type ScrubRecord = z.infer<typeof recordSchema>;
export type LastScrub = NonNullable<ScrubRecord["last"]>;

/** `scrub/record.json`: by it the servers of a store take turns, and one that was started again knows when it is due. */
export class ScrubRecords {
  readonly #store: ObjectStore;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  async last(): Promise<LastScrub | undefined> {
    const cell = await this.#store.readCell(RECORD_KEY);
    return (cell === undefined ? undefined : decode(cell.body))?.last ?? undefined;
  }

  /** Whether it is this server's turn, which it then has: none was begun since `sinceMs`. */
  async begin(nowMs: number, sinceMs: number): Promise<boolean> {
    const { before } = await this.#change((present) => {
      if (latestMs(present) > sinceMs) return undefined;
      return { ...present, begun_at: new Date(nowMs).toISOString() };
    });
    return latestMs(before ?? EMPTY) <= sinceMs;
  }

  /** What was begun was stopped: somebody else may begin. */
  async stopped(): Promise<void> {
    await this.#change((present) => ({ ...present, begun_at: null }));
  }

  async ended(last: LastScrub): Promise<void> {
    await this.#change((present) => ({ ...present, begun_at: last.started_at, last }));
  }

  async #change(change: (present: ScrubRecord) => ScrubRecord | undefined) {
    return await changeCell<ScrubRecord>(this.#store, {
      key: RECORD_KEY,
      decode,
      change: (present) => change(present ?? EMPTY),
    });
  }
}

const EMPTY: ScrubRecord & Nonced = { format: 1, begun_at: null, last: null, nonce: "", history: [] };

function latestMs({ begun_at, last }: ScrubRecord): number {
  return Math.max(...[begun_at, last?.started_at].map((at) => (at == null ? 0 : Date.parse(at) || 0)));
}

/** One that cannot be read says nothing: the next one is begun as if there were none. */
function decode(body: Uint8Array): ScrubRecord {
  try {
    return recordSchema.parse(JSON.parse(Buffer.from(body).toString("utf8")));
  } catch {
    return EMPTY;
  }
}
