import { isSandboxId, SandboxerError } from "@sandboxer/protocol";
import type { ObjectStore } from "../store/store.ts";
import { sandboxRecordSchema, type OutlivingRecord, type SandboxRecords } from "./sandbox-records.ts";

const FOLDER = "outliving-sandboxes";

/** The records in a store that other machines use too, one object each, so that every server sees them. */
export class StoreSandboxRecords implements SandboxRecords {
  readonly #store: ObjectStore;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  async get(sandboxId: string): Promise<OutlivingRecord | undefined> {
    // A name, or anything else that somebody asks for, is no key of a store.
    if (!isSandboxId(sandboxId)) return undefined;
    const cell = await this.#store.readCell(keyOf(sandboxId));
    return cell === undefined ? undefined : decode(sandboxId, cell.body);
  }

  async list(): Promise<ReadonlyMap<string, OutlivingRecord>> {
    const records = new Map<string, OutlivingRecord>();
    for await (const { key } of this.#store.list(FOLDER)) {
      const sandboxId = key.slice(FOLDER.length + 1, -".json".length);
      const record = await this.get(sandboxId);
      if (record !== undefined) records.set(sandboxId, record);
    }
    return records;
  }

  async put(sandboxId: string, record: OutlivingRecord): Promise<void> {
    await this.#store.writeText(keyOf(sandboxId), `${JSON.stringify(record, undefined, 2)}\n`);
  }

  async remove(sandboxId: string): Promise<void> {
    await this.#store.delete(keyOf(sandboxId));
  }
}

function keyOf(sandboxId: string): string {
  return `${FOLDER}/${sandboxId}.json`;
}

function decode(sandboxId: string, body: Uint8Array): OutlivingRecord {
  try {
    return sandboxRecordSchema.parse(JSON.parse(Buffer.from(body).toString("utf8")));
  } catch (error) {
    throw new SandboxerError("store_unavailable", `The record ${keyOf(sandboxId)} cannot be read.`, { cause: error });
  }
}
