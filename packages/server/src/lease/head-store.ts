import { randomUUID } from "node:crypto";
import type { Head } from "@sandboxer/protocol";
import type { Cell, ObjectStore } from "../store/store.ts";
import type { Clock } from "../support/clock.ts";
import { settleSwap } from "./cell-swap.ts";
import type { Stamp } from "./head.ts";
import { decodeRecord, encodeHead, type StoredRecord } from "./head-codec.ts";

/** A head as it is in the store, with the version under which it can be replaced. */
export interface VersionedHead {
  readonly head: Head;
  readonly version: string;
}

export type HeadSwap =
  /** `present` is the new head, or what came after it. */
  { readonly outcome: "written"; readonly present: VersionedHead } | { readonly outcome: "conflict" };

/** Reads and swaps heads; what they mean is elsewhere. */
export class HeadStore {
  readonly #store: ObjectStore;
  readonly #clock: Clock;

  constructor(store: ObjectStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  stamp(): Stamp {
    return { nonce: randomUUID(), now: new Date(this.#clock.wallMs()).toISOString() };
  }

  async readRecord(sandboxId: string): Promise<(StoredRecord & { readonly version: string }) | undefined> {
    const cell = await this.#store.readCell(headKey(sandboxId));
    return cell === undefined ? undefined : { ...decodeRecord(sandboxId, cell.body), version: cell.version };
  }

  /** Undefined also for a folder that came without a head. */
  async read(sandboxId: string): Promise<VersionedHead | undefined> {
    const record = await this.readRecord(sandboxId);
    return record !== undefined && "head" in record ? record : undefined;
  }

  async swap(sandboxId: string, expected: string | undefined, next: Head, signal?: AbortSignal): Promise<HeadSwap> {
    const settled = await settleSwap(this.#store, this.#clock, {
      key: headKey(sandboxId),
      expected,
      body: encodeHead(next),
      isOurs: (cell) => cameFrom(sandboxId, cell, next.nonce),
      ...(signal === undefined ? {} : { signal }),
    });
    if (settled.outcome === "conflict") return { outcome: "conflict" };
    const record = decodeRecord(sandboxId, settled.present.body);
    const head = "head" in record ? record.head : next;
    return { outcome: "written", present: { head, version: settled.present.version } };
  }
}

function headKey(sandboxId: string): string {
  return `${sandboxId}/metadata.json`;
}

function cameFrom(sandboxId: string, cell: Cell, nonce: string): boolean {
  const record = decodeRecord(sandboxId, cell.body);
  return "head" in record && (record.head.nonce === nonce || record.head.history.includes(nonce));
}
