import { followEvents, type EventOptions } from "./events.ts";
import { longCall, type LongCallOptions } from "./long-call.ts";
import { everyItem } from "./pages.ts";
import type {
  BackendRecord,
  EventRecord,
  Expiry,
  InstanceRecord,
  IntegrityReport,
  OperationFilter,
  OperationRecord,
  ProfileRecord,
  ScrubStatus,
  ServerRecord,
  UsageRecord,
} from "./records.ts";
import { Snapshots } from "./snapshots.ts";
import type { Answer, CallInput, CallOptions, JsonRouteName, WireOptions } from "./wire/call-types.ts";
import { fromWire, toWire } from "./wire/naming.ts";
import { Transport, type ConnectionOptions } from "./wire/transport.ts";

/** A server, and what can be asked of it as a whole. Sandboxes are made by `Sandbox.create`. */
export class Sandboxer {
  readonly snapshots: Snapshots;
  readonly transport: Transport;

  constructor(options: ConnectionOptions = {}) {
    this.transport = new Transport(options);
    this.snapshots = new Snapshots(this);
  }

  /** Any route of the HTTP interface, as it is on the wire: parameters, query and body in, the answer out. */
  call<Name extends JsonRouteName>(name: Name, input: CallInput<Name>, options?: WireOptions): Promise<Answer<Name>> {
    return this.transport.call(name, input, options);
  }

  /** What is past its time; with `apply` it is destroyed. */
  async expire({ apply = false, ...options }: CallOptions & { readonly apply?: boolean } = {}): Promise<Expiry> {
    return fromWire(await this.call("expireSandboxes", { query: { apply } }, options));
  }

  /** Reads everything that is saved in the server's store; needs the scope `admin`. `rateMb` null or 0: as fast as it goes. */
  async scrub(options: LongCallOptions & { readonly rateMb?: number | null } = {}): Promise<IntegrityReport> {
    const { rateMb, ...long } = options;
    const body = rateMb === undefined ? {} : { rate_mb: rateMb };
    return fromWire(await this.call("scrubStore", { body }, longCall(long).call));
  }

  async scrubStatus(options: CallOptions = {}): Promise<ScrubStatus> {
    return fromWire(await this.call("scrubStatus", {}, options));
  }

  /** The next one goes on where it was. */
  async stopScrub(options: CallOptions = {}): Promise<void> {
    await this.call("stopScrub", {}, options);
  }

  /** What happens, as it happens. */
  events(options: EventOptions = {}): AsyncGenerator<EventRecord, void, undefined> {
    return followEvents(this.transport, options);
  }

  /** What is under way, and what was, newest first. */
  async *operations(
    filter: OperationFilter = {},
    options: CallOptions = {},
  ): AsyncGenerator<OperationRecord, void, undefined> {
    const query = toWire(filter);
    const items = everyItem((cursor) => this.call("listOperations", { query: { ...query, ...cursor } }, options));
    for await (const item of items) yield fromWire(item);
  }

  /** With `waitSeconds`, up to 60, the answer comes at its end or after that time. */
  async operation(
    id: string,
    { waitSeconds, ...options }: CallOptions & { readonly waitSeconds?: number } = {},
  ): Promise<OperationRecord> {
    const query = waitSeconds === undefined ? {} : { wait: waitSeconds };
    return fromWire(await this.call("getOperation", { params: { id }, query }, options));
  }

  /** As their files say, with the names that these use. */
  async profiles(options: CallOptions = {}): Promise<ProfileRecord[]> {
    return (await this.call("listProfiles", {}, options)).items;
  }

  async profile(name: string, options: CallOptions = {}): Promise<ProfileRecord> {
    return this.call("getProfile", { params: { name } }, options);
  }

  async backends(options: CallOptions = {}): Promise<BackendRecord[]> {
    return fromWire((await this.call("listBackends", {}, options)).items);
  }

  /** What the sandboxes of this server have used lately: the newest points of each. `since`: seconds since 1970. */
  async usage({
    points,
    since,
    ...options
  }: CallOptions & { readonly points?: number; readonly since?: number } = {}): Promise<UsageRecord[]> {
    const query = { ...(points === undefined ? {} : { points }), ...(since === undefined ? {} : { since }) };
    return fromWire((await this.call("listUsage", { query }, options)).items);
  }

  /** Every server on the store. */
  async instances(options: CallOptions = {}): Promise<InstanceRecord[]> {
    return fromWire((await this.call("listInstances", {}, options)).items);
  }

  async info(options: CallOptions = {}): Promise<ServerRecord> {
    return fromWire(await this.call("serverInfo", {}, options));
  }
}
