import { isDeepStrictEqual } from "node:util";
import { isSandboxId, SandboxerError } from "@sandboxer/protocol";
import { AmbiguousWriteError, type Cell, type ObjectStore } from "../store/store.ts";
import { sandboxRecordSchema, type OutlivingRecord, type SandboxRecords } from "./sandbox-records.ts";

const FOLDER = "outliving-sandboxes";

/** The records in a store that other machines use too, one cell each, so that every server sees them. */
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
    for await (const key of this.#store.listCells(FOLDER)) {
      const sandboxId = key.slice(FOLDER.length + 1, -".json".length);
      const record = await this.get(sandboxId);
      if (record !== undefined) records.set(sandboxId, record);
    }
    return records;
  }

  async put(sandboxId: string, record: OutlivingRecord): Promise<void> {
    for (;;) {
      const cell = await this.#store.readCell(keyOf(sandboxId));
      if (await this.#write(sandboxId, cell, record)) return;
    }
  }

  async swap(sandboxId: string, expected: OutlivingRecord, record: OutlivingRecord): Promise<boolean> {
    const wanted = decode(sandboxId, encode(record));
    for (let tried = false; ; tried = true) {
      const cell = await this.#store.readCell(keyOf(sandboxId));
      const present = cell && decode(sandboxId, cell.body);
      // It may be there by a write of which nobody knew what became of it.
      if (!isDeepStrictEqual(present, expected)) return tried && isDeepStrictEqual(present, wanted);
      if (await this.#write(sandboxId, cell, record)) return true;
    }
  }

  async remove(sandboxId: string): Promise<void> {
    await this.#store.deleteCell(keyOf(sandboxId));
  }

  /** False: the cell has changed, or may have; the next look shows it. */
  async #write(sandboxId: string, cell: Cell | undefined, record: OutlivingRecord): Promise<boolean> {
    try {
      const { outcome } = await this.#store.swapCell(keyOf(sandboxId), cell?.version, encode(record));
      return outcome === "written";
    } catch (error) {
      if (error instanceof AmbiguousWriteError) return false;
      throw error;
    }
  }
}

function keyOf(sandboxId: string): string {
  return `${FOLDER}/${sandboxId}.json`;
}

function encode(record: OutlivingRecord): Buffer {
  return Buffer.from(`${JSON.stringify(record, undefined, 2)}\n`);
}

function decode(sandboxId: string, body: Uint8Array): OutlivingRecord {
  try {
    return sandboxRecordSchema.parse(JSON.parse(Buffer.from(body).toString("utf8")));
  } catch (error) {
    throw new SandboxerError("store_unavailable", `The record ${keyOf(sandboxId)} cannot be read.`, { cause: error });
  }
}
