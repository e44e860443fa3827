import { z } from "zod";
import type { ObjectStore } from "../../store/store.ts";
import { changeCell } from "../snapshot-cell.ts";
import type { Nonced } from "../snapshot-record.ts";
import { jsonOf } from "../../support/json.ts";

const RECORD_KEY = "scrub/record.json";

const time = z.string();
const recordSchema = z.looseObject({
  format: z.literal(1),
  /** When a full pass was last begun, by the server's own clock; null: it was stopped. */
  begun_at: time.nullable(),
  /** The server that runs it; absent or null: none, or an older version that does not record it. */
  scrubber: z.string().nullish(),
  /** A scrub was stopped: none starts automatically before this time. */
  not_before: time.nullish(),
  /** When the last finished pass began and ended, and its result. */
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

export interface Turn {
  readonly nowMs: number;
  readonly sinceMs: number;
  /** The id by which others see whether this server is alive. */
  readonly scrubber: string;
  readonly isDead: (instanceId: string) => Promise<boolean>;
}

/** `scrub/record.json`: with it the servers of a store take turns, and a restarted one knows when it is due. */
export class ScrubRecords {
  readonly #store: ObjectStore;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  async last(): Promise<LastScrub | undefined> {
    const cell = await this.#store.readCell(RECORD_KEY);
    return (cell === undefined ? undefined : decode(cell.body))?.last ?? undefined;
  }

  /** Whether it is this server's turn, which it then takes: none was begun since then except by dead servers. */
  async begin({ nowMs, sinceMs, scrubber, isDead }: Turn): Promise<boolean> {
    const cell = await this.#store.readCell(RECORD_KEY);
    const other = (cell === undefined ? undefined : decode(cell.body))?.scrubber ?? undefined;
    const isFree = other !== undefined && (other === scrubber || (await isDead(other)));
    let begun = false;
    await this.#change((present) => {
      const latest = isFree && present.scrubber === other ? { ...present, begun_at: null } : present;
      begun = latestMs(latest) <= sinceMs && msOf(present.not_before) <= nowMs;
      return begun ? { ...present, begun_at: new Date(nowMs).toISOString(), scrubber, not_before: null } : undefined;
    });
    return begun;
  }

  /** The pass was stopped: another server may begin. */
  async stopped(): Promise<void> {
    await this.#change((present) => ({ ...present, begun_at: null, scrubber: null }));
  }

  /** None may start automatically for some time. */
  async hold(untilMs: number): Promise<void> {
    await this.#change((present) => ({ ...present, not_before: new Date(untilMs).toISOString() }));
  }

  async ended(last: LastScrub): Promise<void> {
    await this.#change((present) => ({
      ...present,
      begun_at: last.started_at,
      scrubber: null,
      not_before: null,
      last,
    }));
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
  return Math.max(msOf(begun_at), msOf(last?.started_at));
}

function msOf(at: string | null | undefined): number {
  return at == null ? 0 : Date.parse(at) || 0;
}

/** An unreadable record counts as none. */
function decode(body: Uint8Array): ScrubRecord {
  return recordSchema.safeParse(jsonOf(body)).data ?? EMPTY;
}
