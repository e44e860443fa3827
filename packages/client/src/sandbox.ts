import { longCall, type LongCallOptions, type SandboxHandleOptions } from "./long-call.ts";
import { everyItem } from "./pages.ts";
import type {
  DamagedSandbox,
  AcquireTier,
  ForkSettings,
  HandoffRecord,
  IntegrityReport,
  MoveSettings,
  ProvenCheckpoint,
  RemovedData,
  RetentionPreview,
  SandboxChange,
  SandboxFilter,
  SandboxRecord,
  SnapshotDiff,
  SnapshotRecord,
  SnapshotSettings,
} from "./records.ts";
import { previewRetention } from "./retention.ts";
import { SandboxHandle } from "./sandbox-handle.ts";
import {
  clientOf,
  type AttachOptions,
  type ClientOptions,
  type CreateOptions,
  type RestoreOptions,
} from "./sandbox-options.ts";
import type { Sandboxer } from "./sandboxer.ts";
import type { Answer, CallInput, CallOptions } from "./wire/call-types.ts";
import { isSandboxerError } from "./wire/errors.ts";
import { fromWire, toWire } from "./wire/naming.ts";

/**
 * A sandbox. Calls go to the server that has it, and wake it where nobody has; a handle outlives checkpoints, moves and
 * restarts of servers. `await using` destroys the sandbox at the end of the scope, or saves it with `keep`.
 */
export class Sandbox extends SandboxHandle {
  readonly #keep: boolean;

  constructor(
    client: Sandboxer,
    record: ConstructorParameters<typeof SandboxHandle>[1],
    options: SandboxHandleOptions = {},
  ) {
    super(client, record, options);
    this.#keep = options.keep ?? false;
  }

  /** Makes a sandbox, on http://127.0.0.1:8080 unless told otherwise. */
  static async create(options: CreateOptions & ClientOptions = {}): Promise<Sandbox> {
    const { client, settings } = clientOf(options);
    const { call, handle, rest } = longCall<CreateOptions>({ ...settings, signal: options.signal });
    return Sandbox.#of(client, await client.call("createSandbox", { body: toWire(rest) }, call), handle);
  }

  /** The sandbox with this key: the one that is there, one from its newest snapshot, or a fresh one; `tier` says which. */
  static async acquire(options: CreateOptions & ClientOptions & { readonly key: string }): Promise<Sandbox> {
    const { client, settings } = clientOf(options);
    const { call, handle, rest } = longCall<CreateOptions>({ ...settings, signal: options.signal });
    const body = { ...toWire<NonNullable<CallInput<"createSandbox">["body"]>>(rest), key: options.key };
    const { token, ...record } = await client.call("acquireSandbox", { body }, call);
    return Sandbox.#of(client, { ...record, ...(token === null ? {} : { token }) }, handle);
  }

  /** A handle on a sandbox that is there, running or stored. It is woken when it is used, or by `resume`. */
  static async attach(id: string, options: AttachOptions & ClientOptions = {}): Promise<Sandbox> {
    const { client, settings } = clientOf(options);
    const { call, handle } = longCall<AttachOptions>({ ...settings, signal: options.signal });
    return Sandbox.#of(client, await client.call("getSandbox", { params: { id } }, call), handle);
  }

  /** A new sandbox with the state of a snapshot: its id, or its name. */
  static async restore(snapshotId: string, options: RestoreOptions & ClientOptions = {}): Promise<Sandbox> {
    const { client, settings } = clientOf(options);
    const { call, handle, rest } = longCall<RestoreOptions>({ ...settings, signal: options.signal });
    const input = { params: { id: snapshotId }, body: toWire(rest) };
    return Sandbox.#of(client, await client.call("restoreSnapshot", input, call), handle);
  }

  /** Newest first, of the server and of its store. `onDamaged` hears of those whose record cannot be read. */
  static async *list(
    filter: SandboxFilter = {},
    {
      onDamaged,
      ...options
    }: AttachOptions & ClientOptions & { readonly onDamaged?: (damaged: DamagedSandbox) => void } = {},
  ): AsyncGenerator<Sandbox, void, undefined> {
    const { client, settings } = clientOf(options);
    const { call, handle } = longCall<AttachOptions>({ ...settings, signal: options.signal });
    const query = toWire(filter);
    const records = everyItem(async (cursor) => {
      const page = await client.call("listSandboxes", { query: { ...query, ...cursor } }, call);
      // Servers of earlier releases tell of none.
      for (const damaged of (page as Partial<typeof page>).damaged ?? []) onDamaged?.(fromWire(damaged));
      return page;
    });
    for await (const record of records) yield Sandbox.#of(client, record, handle);
  }

  static #of(
    client: Sandboxer,
    record: Answer<"getSandbox"> & {
      readonly token?: string;
      readonly tier?: AcquireTier;
      readonly carried?: Answer<"explainSnapshot">;
    },
    options: SandboxHandleOptions,
  ): Sandbox {
    return new Sandbox(client, fromWire(record), options);
  }

  /** Captures it; it goes on. */
  async snapshot(options: SnapshotSettings & LongCallOptions = {}): Promise<SnapshotRecord> {
    const { call, rest } = longCall(options);
    return fromWire(await this.calls.call("createSnapshot", { ...this.target, body: toWire(rest) }, call));
  }

  /** The snapshots that were taken of it, newest first. */
  snapshots(options: CallOptions = {}): AsyncGenerator<SnapshotRecord, void, undefined> {
    return this.client.snapshots.list({ sandboxId: this.id }, options);
  }

  /** What has changed in it since a snapshot. */
  async diff(snapshotId: string, options: CallOptions & { readonly limit?: number } = {}): Promise<SnapshotDiff> {
    return this.client.snapshots.diff(snapshotId, this, options);
  }

  /** Captures it once and makes new sandboxes of that; it goes on. */
  async fork(options: ForkSettings & LongCallOptions & SandboxHandleOptions = {}): Promise<Sandbox[]> {
    const { call, handle, rest } = longCall(options);
    const { items } = await this.calls.call("forkSandbox", { ...this.target, body: toWire(rest) }, call);
    return items.map((record) => Sandbox.#of(this.client, record, handle));
  }

  /** Moves it to another backend with its workspace. It keeps its id, name, key and token. */
  async move(options: MoveSettings & LongCallOptions & SandboxHandleOptions): Promise<Sandbox> {
    const { call, handle, rest } = longCall(options);
    const body: NonNullable<CallInput<"moveSandbox">["body"]> = toWire(rest);
    const record = await this.calls.call("moveSandbox", { ...this.target, body }, call);
    return Sandbox.#of(this.client, { ...record, ...(this.token === undefined ? {} : { token: this.token }) }, handle);
  }

  /** Reads every block of its stored checkpoints, or of one; it is not woken. */
  async verify(options: LongCallOptions & { readonly checkpoint?: string } = {}): Promise<IntegrityReport> {
    const { checkpoint, ...long } = options;
    const input = { ...this.target, body: checkpoint === undefined ? {} : { checkpoint } };
    return fromWire(await this.client.call("verifySandbox", input, longCall(long).call));
  }

  /** Restores its newest checkpoint, or another one, where nobody can reach it, and hears whether it answers. */
  async prove(options: LongCallOptions & { readonly checkpoint?: string } = {}): Promise<ProvenCheckpoint> {
    const { checkpoint, ...long } = options;
    const input = { ...this.target, body: checkpoint === undefined ? {} : { checkpoint } };
    return fromWire(await this.client.call("proveSandbox", input, longCall(long).call));
  }

  /** What of its saved states would go by rules of retention, or by those that it has, and how many bytes. */
  async previewRetention(retention?: SandboxChange["retention"], options: CallOptions = {}): Promise<RetentionPreview> {
    return previewRetention(this.client, this.id, retention, options);
  }

  /** Puts it back to a snapshot, in place. */
  async rewind(snapshotId: string, options: LongCallOptions = {}): Promise<SandboxRecord> {
    const input = { ...this.target, body: { snapshot_id: snapshotId } };
    return this.note(fromWire(await this.calls.call("rewindSandbox", input, longCall(options).call)));
  }

  /**
   * Saves everything and stops it. It can be taken up anywhere; using this handle wakes it again. With `leaveRunning` it
   * goes on where it is, and begins with this state if its server dies.
   */
  async checkpoint(options: LongCallOptions & { readonly leaveRunning?: boolean } = {}): Promise<SandboxRecord> {
    const { call } = longCall(options);
    if (options.leaveRunning === true) {
      const input = { ...this.target, body: { leave_running: true } };
      return this.note(fromWire(await this.calls.call("checkpointSandbox", input, call)));
    }
    return this.calls.puttingDown(async () => {
      try {
        return this.note(fromWire(await this.calls.call("checkpointSandbox", this.target, call)));
      } catch (error) {
        // The answer was lost, not the checkpoint.
        if (isSandboxerError(error, "server_unreachable") && (await this.refresh(options)).state === "stored") {
          return this.record;
        }
        throw error;
      }
    });
  }

  /** Wakes it on the client's server; a server that runs it is asked to give it up. */
  async resume(options: LongCallOptions & { readonly checkpoint?: string } = {}): Promise<SandboxRecord> {
    const { checkpoint } = options;
    return this.note(fromWire(await this.calls.resume({ ...longCall(options).call, checkpoint })));
  }

  /** Moves it to another server of the store: a URL, or the id of an instance. This handle follows it. */
  async handoff(to: string, options: LongCallOptions = {}): Promise<HandoffRecord> {
    const { call } = longCall(options);
    const moved = fromWire(await this.calls.call("handoffSandbox", { ...this.target, body: { to } }, call));
    this.note(moved.sandbox);
    return moved;
  }

  /** Makes it anew from what it was made of, under the same id; its state is lost. */
  async recreate(options: LongCallOptions = {}): Promise<SandboxRecord> {
    const { call } = longCall(options);
    return this.note(fromWire(await this.calls.call("recreateSandbox", this.target, call)));
  }

  /** Changes name, labels, idle timeout or what may be lost of it. */
  async update(change: SandboxChange, options: CallOptions = {}): Promise<SandboxRecord> {
    const input = { ...this.target, body: toWire(change) };
    return this.note(fromWire(await this.calls.call("updateSandbox", input, options)));
  }

  /** Lets it live for this long from now, such as `4h`. */
  async extendTtl(duration: string, options: CallOptions = {}): Promise<SandboxRecord> {
    const input = { ...this.target, body: { duration } };
    return this.note(fromWire(await this.calls.call("extendTtl", input, options)));
  }

  /** Destroys it and everything that is stored of it; tells how many bytes go, and how many others share. */
  async destroy(options: CallOptions = {}): Promise<RemovedData> {
    const answer: Answer<"destroySandbox"> | undefined = await this.calls.puttingDown(() =>
      this.calls.call("destroySandbox", this.target, options),
    );
    // Older servers do not say, and one whose first answer was lost has nothing more to say.
    return answer === undefined ? { removedBytes: null, sharedBytes: null } : fromWire(answer);
  }

  /** The end of `await using`: destroyed, or saved with `keep`. One that is gone, or saved, already is left so. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await (this.#keep ? this.#putDown() : this.destroy());
    } catch (error) {
      if (!isSandboxerError(error, "sandbox_not_found", "sandbox_destroyed")) throw error;
    }
  }

  async #putDown(): Promise<void> {
    const { state } = await this.refresh();
    if (state !== "stored" && state !== "destroyed") await this.checkpoint();
  }
}
