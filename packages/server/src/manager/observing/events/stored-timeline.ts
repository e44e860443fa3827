import { type EventRecord, eventRecordSchema } from "@sandboxer/protocol";
import { z } from "zod";
import { ObjectNotFoundError, type ObjectStore } from "../../../store/store.ts";
import { jsonOf } from "../../../support/json.ts";
import { isStoreFailure } from "../../../support/record-damage.ts";

const FOLDER = "timelines";
/** A reader of a timeline reads this many segments, the newest. Older ones are removed by the next owner. */
const KEEP_SEGMENTS = 8;
const MAX_SEGMENT_BYTES = 1024 * 1024;
const EPOCH_DIGITS = 13;

const segmentSchema = z.looseObject({ format: z.literal(1), events: z.array(eventRecordSchema) });

/** An event and the epoch of the owner that recorded it. */
export interface PlacedEvent {
  readonly epoch: number;
  readonly event: EventRecord;
}

/**
 * The events of sandboxes in the store: `timelines/{sandbox_id}/{epoch}.json` has those of one owner. Only the owner of
 * an epoch writes its segment, as a whole, so that no two servers write the same one.
 */
export class StoredTimelines {
  readonly #store: ObjectStore;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  async write(sandboxId: string, epoch: number, events: readonly EventRecord[]): Promise<void> {
    await this.#store.writeText(segmentKey(sandboxId, epoch), JSON.stringify({ format: 1, events }));
  }

  /** A segment that cannot be read is left out. */
  async read(sandboxId: string): Promise<readonly PlacedEvent[]> {
    const keys = (await this.#keys(sandboxId)).slice(-KEEP_SEGMENTS);
    return (await Promise.all(keys.map((key) => this.#segment(key).catch(unlessMissing)))).flat();
  }

  /** Segments that no reader shows any more. */
  async removeOld(sandboxId: string): Promise<void> {
    const keys = await this.#keys(sandboxId);
    for (const key of keys.slice(0, -KEEP_SEGMENTS)) await this.#store.delete(key);
  }

  async #keys(sandboxId: string): Promise<string[]> {
    const keys: string[] = [];
    for await (const { key } of this.#store.list(`${FOLDER}/${sandboxId}`)) keys.push(key);
    return keys.toSorted();
  }

  async #segment(key: string): Promise<readonly PlacedEvent[]> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of this.#store.read(key, { end: MAX_SEGMENT_BYTES })) chunks.push(chunk);
    const { events = [] } = segmentSchema.safeParse(jsonOf(Buffer.concat(chunks))).data ?? {};
    return events.map((event) => ({ epoch: epochOf(key), event }));
  }
}

/** For a segment that was removed meanwhile, or is damaged. A store that does not answer is an error. */
function unlessMissing(error: unknown): readonly PlacedEvent[] {
  if (isStoreFailure(error) && !(error instanceof ObjectNotFoundError)) throw error;
  return [];
}

function segmentKey(sandboxId: string, epoch: number): string {
  return `${FOLDER}/${sandboxId}/${String(epoch).padStart(EPOCH_DIGITS, "0")}.json`;
}

function epochOf(key: string): number {
  return Number(key.slice(key.lastIndexOf("/") + 1, -".json".length));
}
