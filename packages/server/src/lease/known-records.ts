import type { ObjectStore } from "../store/store.ts";
import { mapAtOnce } from "../support/map-at-once.ts";
import { unlessDamaged } from "../support/record-damage.ts";
import { decodeRecord, instanceIdOf, INSTANCES_FOLDER, type LivenessRecord, mayHaveDied } from "./liveness-record.ts";

const READS_AT_ONCE = 16;

interface KnownRecord {
  /** In the last list. */
  readonly sizeBytes: number;
  /** Undefined: it cannot be read. */
  readonly record: LivenessRecord | undefined;
}

/**
 * The liveness records of a store, by one list. Renewals change nothing in a record that others need, and death is
 * final. So a record is read when it is new, and when it may say dead by its size.
 */
export class KnownRecords {
  readonly #store: ObjectStore;
  #known: ReadonlyMap<string, KnownRecord> = new Map();

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  async look(): Promise<ReadonlyMap<string, LivenessRecord>> {
    const listed = await Array.fromAsync(this.#store.listMarks(INSTANCES_FOLDER));
    const known = this.#known;
    const found = await mapAtOnce(listed, READS_AT_ONCE, async ({ key, sizeBytes }): Promise<[string, KnownRecord]> => {
      const instanceId = instanceIdOf(key);
      const before = known.get(instanceId);
      const isKnown = before?.record?.dead === true || (before && !mayHaveDied(before.sizeBytes, sizeBytes));
      if (isKnown === true) return [instanceId, { ...before, sizeBytes }];
      const cell = await this.#store.readCell(key).catch(unlessDamaged);
      const record = cell === undefined || cell === "damaged" ? undefined : decodeRecord(cell.body);
      return [instanceId, { sizeBytes, record }];
    });
    this.#known = new Map(found);
    return new Map(found.flatMap(([instanceId, { record }]) => (record === undefined ? [] : [[instanceId, record]])));
  }
}
