import { followEvents, type EventOptions } from "./events.ts";
import { Images } from "./images.ts";
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

/** A server, and requests about it as a whole. `Sandbox.create` creates sandboxes. */
export class Sandboxer {
  readonly snapshots: Snapshots;
  readonly images: Images;
  readonly transport: Transport;

  constructor(options: ConnectionOptions = {}) {
    this.transport = new Transport(options);
    this.snapshots = new Snapshots(this);
    this.images = new Images(this);
  }

  /** Calls any route of the HTTP API in its wire form: parameters, query and body in, the response out. */
  call<Name extends JsonRouteName>(name: Name, input: CallInput<Name>, options?: WireOptions): Promise<Answer<Name>> {
    return this.transport.call(name, input, options);
  }

  /** Lists expired sandboxes; with `apply` deletes them. */
  async expire({ apply = false, ...options }: CallOptions & { readonly apply?: boolean } = {}): Promise<Expiry> {
    return fromWire(await this.call("expireSandboxes", { query: { apply } }, options));
  }

  /** Checks all data in the server's store; needs the scope `admin`. `rateMb` null or 0: no limit. */
  async scrub(options: LongCallOptions & { readonly rateMb?: number | null } = {}): Promise<IntegrityReport> {
    const { rateMb, ...long } = options;
    const body = rateMb === undefined ? {} : { rate_mb: rateMb };
    return fromWire(await this.call("scrubStore", { body }, longCall(long).call));
  }

  async scrubStatus(options: CallOptions = {}): Promise<ScrubStatus> {
    return fromWire(await this.call("scrubStatus", {}, options));
  }

  /** The next scrub continues where it stopped. */
  async stopScrub(options: CallOptions = {}): Promise<void> {
    await this.call("stopScrub", {}, options);
  }

  /** Events as they happen. */
  events(options: EventOptions = {}): AsyncGenerator<EventRecord, void, undefined> {
    return followEvents(this.transport, options);
  }

  /** Running and finished operations, newest first. */
  async *operations(
    filter: OperationFilter = {},
    options: CallOptions = {},
  ): AsyncGenerator<OperationRecord, void, undefined> {
    const query = toWire(filter);
    const items = everyItem((cursor) => this.call("listOperations", { query: { ...query, ...cursor } }, options));
    for await (const item of items) yield fromWire(item);
  }

  /** With `waitSeconds`, up to 60, waits for its end or that time. */
  async operation(
    id: string,
    { waitSeconds, ...options }: CallOptions & { readonly waitSeconds?: number } = {},
  ): Promise<OperationRecord> {
    const query = waitSeconds === undefined ? {} : { wait: waitSeconds };
    return fromWire(await this.call("getOperation", { params: { id }, query }, options));
  }

  /** As in their files, with their field names. */
  async profiles(options: CallOptions = {}): Promise<ProfileRecord[]> {
    return (await this.call("listProfiles", {}, options)).items;
  }

  async profile(name: string, options: CallOptions = {}): Promise<ProfileRecord> {
    return this.call("getProfile", { params: { name } }, options);
  }

  async backends(options: CallOptions = {}): Promise<BackendRecord[]> {
    return fromWire((await this.call("listBackends", {}, options)).items);
  }

  /** The newest resource usage points of every sandbox of this server. `since`: seconds since 1970. */
  async usage({
    points,
    since,
    ...options
  }: CallOptions & { readonly points?: number; readonly since?: number } = {}): Promise<UsageRecord[]> {
    const query = { ...(points === undefined ? {} : { points }), ...(since === undefined ? {} : { since }) };
    return fromWire((await this.call("listUsage", { query }, options)).items);
  }

  /** All servers that share the store. */
  async instances(options: CallOptions = {}): Promise<InstanceRecord[]> {
    return fromWire((await this.call("listInstances", {}, options)).items);
  }

  async info(options: CallOptions = {}): Promise<ServerRecord> {
    return fromWire(await this.call("serverInfo", {}, options));
  }
}
