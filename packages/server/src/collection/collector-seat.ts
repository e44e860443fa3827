import { SandboxerError, storedCountSchema, storedTextSchema } from "@sandboxer/protocol";
import { z } from "zod";
import { changeCell } from "../checkpoints/snapshot-cell.ts";
import type { ObjectStore } from "../store/store.ts";
import { type Clock, systemClock } from "../support/clock.ts";
import { jsonOf } from "../support/json.ts";

const RECORD_KEY = "collection/record.json";
/** A server that has left the seat does not take it again for this long, unless another one had it meanwhile. */
const REST_MS = 3_600_000;

const recordSchema = z.looseObject({
  format: z.literal(1),
  /** Grows when another server becomes the collector. */
  epoch: storedCountSchema,
  collector: storedTextSchema.nullable(),
  /** Grows when a server has removed images; and how far that was when packs were last collected. */
  removals: storedCountSchema,
  collected: storedCountSchema,
  nonce: storedTextSchema,
  history: z.array(storedTextSchema),
});
type SeatRecord = z.infer<typeof recordSchema>;

const EMPTY: SeatRecord = {
  format: 1,
  epoch: 0,
  collector: null,
  removals: 0,
  collected: 0,
  nonce: "",
  history: [],
};

export interface SeatOptions {
  /** The present id of this server. */
  readonly me: () => string;
  readonly isDead: (instanceId: string) => Promise<boolean>;
  readonly clock?: Pick<Clock, "monotonicMs">;
}

/** The state of the seat for the server that has it. */
export interface Seat {
  readonly removals: number;
  readonly collected: number;
}

/**
 * `collection/record.json`: the one server that collects for all servers of a store. When that server is dead or has
 * left the seat, another one takes it. Collecting is safe without a seat; it only keeps every server from doing the same
 * work. A record that cannot be read is left alone, and nobody collects.
 */
export class CollectorSeat {
  readonly #store: ObjectStore;
  readonly #options: SeatOptions;
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** The epoch in which this server has left the seat, and until when it rests. */
  #left: { readonly epoch: number; readonly untilMs: number } | undefined;

  constructor(store: ObjectStore, options: SeatOptions) {
    this.#store = store;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Undefined if another server has the seat. `removed`: this server has removed images since its last look. */
  async look(removed: boolean): Promise<Seat | undefined> {
    const me = this.#options.me();
    const cell = await this.#store.readCell(RECORD_KEY);
    const { collector, epoch } = cell === undefined ? EMPTY : decode(cell.body);
    const rests = this.#left?.epoch === epoch && this.#clock.monotonicMs() < this.#left.untilMs;
    const isFree = collector === null ? !rests : collector !== me && (await this.#options.isDead(collector));
    const after = await this.#change((present) => {
      const removals = present.removals + (removed ? 1 : 0);
      if (isFree && present.collector === collector)
        return { ...present, epoch: present.epoch + 1, collector: me, removals };
      return removed ? { ...present, removals } : undefined;
    });
    return after.collector === me ? after : undefined;
  }

  /** The packs of all removals up to this number are collected. */
  async collected(removals: number): Promise<void> {
    await this.#change((present) => (present.collected >= removals ? undefined : { ...present, collected: removals }));
  }

  /** For a server whose collections fail: another server may take the seat. */
  async leave(): Promise<void> {
    const me = this.#options.me();
    const { epoch } = await this.#change((present) =>
      present.collector === me ? { ...present, collector: null } : undefined,
    );
    this.#left = { epoch, untilMs: this.#clock.monotonicMs() + REST_MS };
  }

  async #change(change: (present: SeatRecord) => SeatRecord | undefined): Promise<SeatRecord> {
    const { after } = await changeCell<SeatRecord>(this.#store, {
      key: RECORD_KEY,
      decode,
      change: (present) => change(present ?? EMPTY),
    });
    return after ?? EMPTY;
  }
}

/** Throws if it cannot be read: a server of a later release may have the seat. */
function decode(body: Uint8Array): SeatRecord {
  const { data } = recordSchema.safeParse(jsonOf(body));
  if (data !== undefined) return data;
  throw new SandboxerError("not_supported", `This release cannot read ${RECORD_KEY}, so it collects no garbage.`, {
    hint: "Update this server. If no server of the store is newer, the record is damaged: delete it, and one of them collects again.",
    details: { object: RECORD_KEY },
  });
}
