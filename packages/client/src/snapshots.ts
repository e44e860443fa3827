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

/** The snapshots of a server. A name works wherever an id is expected. */
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

  /** With `verify`, checks its data; `state` and `problem` then have the result. */
  async get(id: string, options: CallOptions & { readonly verify?: boolean } = {}): Promise<SnapshotRecord> {
    const { verify, ...call } = options;
    const query = verify === undefined ? {} : { verify };
    return fromWire(await this.#client.call("getSnapshot", { params: { id }, query }, call));
  }

  async update(id: string, change: SnapshotChange, options: CallOptions = {}): Promise<SnapshotRecord> {
    return fromWire(await this.#client.call("updateSnapshot", { params: { id }, body: toWire(change) }, options));
  }

  /** Fails while a live sandbox depends on it. */
  async delete(id: string, options: CallOptions = {}): Promise<void> {
    await this.#client.call("deleteSnapshot", { params: { id } }, options);
  }

  /** Test-restores it in isolation; `proven` and `unproven` have the result. */
  async prove(id: string, options: LongCallOptions = {}): Promise<SnapshotRecord> {
    return fromWire(await this.#client.call("proveSnapshot", { params: { id } }, longCall(options).call));
  }

  /** Checks every block of it; the report lists damage and every image that it affects. */
  async verify(id: string, options: LongCallOptions = {}): Promise<IntegrityReport> {
    return fromWire(await this.#client.call("verifySnapshot", { params: { id } }, longCall(options).call));
  }

  /** Previews what a restore would and would not keep, without doing it. */
  async explain(id: string, options: CallOptions & { readonly backend?: string } = {}): Promise<Carried> {
    const { backend, ...call } = options;
    const query = backend === undefined ? {} : { backend };
    return fromWire(await this.#client.call("explainSnapshot", { params: { id }, query }, call));
  }

  /** The changes from a snapshot to another one, or to a sandbox as it is now. */
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
