import { longCall, type LongCallOptions } from "./long-call.ts";
import { everyItem } from "./pages.ts";
import type {
  Carried,
  IntegrityReport,
  SnapshotChange,
  SnapshotDiff,
  SnapshotFilter,
  SnapshotRecord,
} from "./records.ts";
import type { Caller, CallOptions } from "./wire/call-types.ts";
import { fromWire, toWire } from "./wire/naming.ts";

/** The snapshots of a server. Where an id is asked for, a name does as well. */
export class Snapshots {
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
  }

  /** Newest first. */
  async *list(filter: SnapshotFilter = {}, options: CallOptions = {}): AsyncGenerator<SnapshotRecord, void, undefined> {
    const query = toWire(filter);
    const items = everyItem((cursor) =>
      this.#client.call("listSnapshots", { query: { ...query, ...cursor } }, options),
    );
    for await (const item of items) yield fromWire(item);
  }

  /** With `verify`, its data is looked at; `state` and `problem` then say what was found. */
  async get(id: string, options: CallOptions & { readonly verify?: boolean } = {}): Promise<SnapshotRecord> {
    const { verify, ...call } = options;
    const query = verify === undefined ? {} : { verify };
    return fromWire(await this.#client.call("getSnapshot", { params: { id }, query }, call));
  }

  async update(id: string, change: SnapshotChange, options: CallOptions = {}): Promise<SnapshotRecord> {
    return fromWire(await this.#client.call("updateSnapshot", { params: { id }, body: toWire(change) }, options));
  }

  /** Refused while something live depends on it. */
  async delete(id: string, options: CallOptions = {}): Promise<void> {
    await this.#client.call("deleteSnapshot", { params: { id } }, options);
  }

  /** Restores it where nobody can reach it and hears whether it answers; `proven` and `unproven` say how that went. */
  async prove(id: string, options: LongCallOptions = {}): Promise<SnapshotRecord> {
    return fromWire(await this.#client.call("proveSnapshot", { params: { id } }, longCall(options).call));
  }

  /** Reads every block of it; the report says what is damaged, and every image that this hurts. */
  async verify(id: string, options: LongCallOptions = {}): Promise<IntegrityReport> {
    return fromWire(await this.#client.call("verifySnapshot", { params: { id } }, longCall(options).call));
  }

  /** What a restore would carry and what not, without doing it. */
  async explain(id: string, options: CallOptions & { readonly backend?: string } = {}): Promise<Carried> {
    const { backend, ...call } = options;
    const query = backend === undefined ? {} : { backend };
    return fromWire(await this.#client.call("explainSnapshot", { params: { id }, query }, call));
  }

  /** What changed from a snapshot to another one, or to a sandbox as it is now. */
  async diff(
    id: string,
    to: string | { readonly id: string },
    options: CallOptions & { readonly limit?: number } = {},
  ): Promise<SnapshotDiff> {
    const { limit, ...call } = options;
    const query = { to: typeof to === "string" ? to : `sandbox:${to.id}`, ...(limit === undefined ? {} : { limit }) };
    return fromWire(await this.#client.call("diffSnapshots", { params: { id }, query }, call));
  }
}
