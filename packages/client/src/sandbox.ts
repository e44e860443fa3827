import { SandboxerError } from "@sandboxer/protocol/errors";
import { longCall, type LongCallOptions, type SandboxHandleOptions } from "./long-call.ts";
import { everyItem } from "./pages.ts";
import type {
  DamagedSandbox,
  AcquireTier,
  ForkSettings,
  HandoffRecord,
  IntegrityReport,
  MoveSettings,
  PromotionRecord,
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
import { SandboxCalls } from "./sandbox-calls.ts";
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
 * A sandbox. Calls go to the server that runs it, and resume it if it is paused; a handle survives checkpoints,
 * handoffs and restarts of servers. `await using` deletes the sandbox at the end of the scope, or saves it with `keep`.
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

  /** Creates a sandbox, by default on http://127.0.0.1:8080. */
  static async create(options: CreateOptions & ClientOptions = {}): Promise<Sandbox> {
    const { client, settings } = clientOf(options);
    const { call, handle, rest } = longCall<CreateOptions>({ ...settings, signal: options.signal });
    return Sandbox.#of(client, await client.call("createSandbox", { body: toWire(rest) }, call), handle);
  }

  /**
   * The sandbox with this key: the existing one, one restored from its newest snapshot, or a new one; `tier` says
   * which.
   */
  static async acquire(options: CreateOptions & ClientOptions & { readonly key: string }): Promise<Sandbox> {
    const { client, settings } = clientOf(options);
    const { call, handle, rest } = longCall<CreateOptions>({ ...settings, signal: options.signal });
    const body = { ...toWire<NonNullable<CallInput<"createSandbox">["body"]>>(rest), key: options.key };
    const { token, ...record } = await client.call("acquireSandbox", { body }, call);
    return Sandbox.#of(client, { ...record, ...(token === null ? {} : { token }) }, handle);
  }

  /** A handle on an existing sandbox, running or paused. It is resumed when it is used, or by `resume`. */
  static async attach(id: string, options: AttachOptions & ClientOptions = {}): Promise<Sandbox> {
    const { client, settings } = clientOf(options);
    const { call, handle } = longCall<AttachOptions>({ ...settings, signal: options.signal });
    return Sandbox.#of(client, await client.call("getSandbox", { params: { id } }, call), handle);
  }

  /** Creates a new sandbox from a snapshot, given by id or name. */
  static async restore(snapshotId: string, options: RestoreOptions & ClientOptions = {}): Promise<Sandbox> {
    const { client, settings } = clientOf(options);
    const { call, handle, rest } = longCall<RestoreOptions>({ ...settings, signal: options.signal });
    const input = { params: { id: snapshotId }, body: toWire(rest) };
    return Sandbox.#of(client, await client.call("restoreSnapshot", input, call), handle);
  }

  /**
   * The sandboxes of the server and its store, newest first. `onDamaged` is called for those whose record cannot be
   * read.
   */
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
      // Servers of earlier releases do not report any.
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

  /** Takes a snapshot; the sandbox keeps running. */
  async snapshot(options: SnapshotSettings & LongCallOptions = {}): Promise<SnapshotRecord> {
    const { call, rest } = longCall(options);
    return fromWire(await this.calls.call("createSnapshot", { ...this.target, body: toWire(rest) }, call));
  }

  /** Its snapshots, newest first. */
  snapshots(options: CallOptions = {}): AsyncGenerator<SnapshotRecord, void, undefined> {
    return this.client.snapshots.list({ sandboxId: this.id }, options);
  }

  /** The files that changed in it since a snapshot. */
  async diff(snapshotId: string, options: CallOptions & { readonly limit?: number } = {}): Promise<SnapshotDiff> {
    const { limit, ...call } = options;
    const query = { to: `sandbox:${this.id}`, ...(limit === undefined ? {} : { limit }) };
    return fromWire(await this.calls.call("diffSnapshots", { params: { id: snapshotId }, query }, call));
  }

  /** Creates new sandboxes from its current state; it keeps running. */
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

  /** Checks every block of its checkpoints, or of one, without resuming it. */
  async verify(options: LongCallOptions & { readonly checkpoint?: string } = {}): Promise<IntegrityReport> {
    const { checkpoint, ...long } = options;
    const input = { ...this.target, body: checkpoint === undefined ? {} : { checkpoint } };
    return fromWire(await this.client.call("verifySandbox", input, longCall(long).call));
  }

  /** Test-restores its newest checkpoint, or another one, in isolation. */
  async prove(options: LongCallOptions & { readonly checkpoint?: string } = {}): Promise<ProvenCheckpoint> {
    const { checkpoint, ...long } = options;
    const input = { ...this.target, body: checkpoint === undefined ? {} : { checkpoint } };
    return fromWire(await this.client.call("proveSandbox", input, longCall(long).call));
  }

  /** Previews which saved states given or current retention rules would remove, and how many bytes. */
  async previewRetention(retention?: SandboxChange["retention"], options: CallOptions = {}): Promise<RetentionPreview> {
    return previewRetention(this.client, this.id, retention, options);
  }

  /** Rewinds it to a snapshot, in place. */
  async rewind(snapshotId: string, options: LongCallOptions = {}): Promise<SandboxRecord> {
    const input = { ...this.target, body: { snapshot_id: snapshotId } };
    return this.note(fromWire(await this.calls.call("rewindSandbox", input, longCall(options).call)));
  }

  /**
   * Gives its state to the sandbox that it was forked or restored from, and deletes it. That sandbox keeps its id, name,
   * key, token and ports. `into`: an ancestor further back. `discardOthers`: deletes the other forks too.
   */
  async promote(
    options: LongCallOptions & {
      readonly into?: string | { readonly id: string };
      readonly discardOthers?: boolean;
    } = {},
  ): Promise<PromotionRecord> {
    const { into, discardOthers = false, ...long } = options;
    const id = typeof into === "object" ? into.id : (into ?? this.record.origin.sandboxId);
    if (id === null) {
      throw new SandboxerError("bad_request", "The sandbox was created from scratch, so there is no original.", {
        hint: "Promote a fork.",
      });
    }
    const original = new SandboxCalls(this.client.transport, id);
    const input = { params: { id }, body: { winner: this.id, discard_others: discardOthers } };
    return fromWire(await original.call("promoteSandbox", input, longCall(long).call));
  }

  /**
   * Pauses it: saves everything and stops it. Any server can resume it; using this handle resumes it. With
   * `leaveRunning` it keeps running, and resumes from this checkpoint if its server dies.
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
        // The response was lost, not the checkpoint.
        if (isSandboxerError(error, "server_unreachable") && (await this.refresh(options)).state === "stored") {
          return this.record;
        }
        throw error;
      }
    });
  }

  /** Resumes it on the client's server; a server that runs it is asked to hand it off. */
  async resume(options: LongCallOptions & { readonly checkpoint?: string } = {}): Promise<SandboxRecord> {
    const { checkpoint } = options;
    return this.note(fromWire(await this.calls.resume({ ...longCall(options).call, checkpoint })));
  }

  /** Moves it to another server of the store, given by URL or id. This handle follows it. */
  async handoff(to: string, options: LongCallOptions = {}): Promise<HandoffRecord> {
    const { call } = longCall(options);
    const moved = fromWire(await this.calls.call("handoffSandbox", { ...this.target, body: { to } }, call));
    this.note(moved.sandbox);
    return moved;
  }

  /** Creates it again with the same id and settings; its state is lost. */
  async recreate(options: LongCallOptions = {}): Promise<SandboxRecord> {
    const { call } = longCall(options);
    return this.note(fromWire(await this.calls.call("recreateSandbox", this.target, call)));
  }

  /** Changes its name, labels, idle timeout, max loss, retention or public ports. */
  async update(change: SandboxChange, options: CallOptions = {}): Promise<SandboxRecord> {
    const input = { ...this.target, body: toWire(change) };
    return this.note(fromWire(await this.calls.call("updateSandbox", input, options)));
  }

  /** Sets its remaining lifetime, such as `4h`. */
  async extendTtl(duration: string, options: CallOptions = {}): Promise<SandboxRecord> {
    const input = { ...this.target, body: { duration } };
    return this.note(fromWire(await this.calls.call("extendTtl", input, options)));
  }

  /** Deletes it and its checkpoints; returns how many bytes are freed, and how many others share. */
  async destroy(options: CallOptions = {}): Promise<RemovedData> {
    const answer: Answer<"destroySandbox"> | undefined = await this.calls.puttingDown(() =>
      this.calls.call("destroySandbox", this.target, options),
    );
    // Older servers do not report it, and after a lost first response there is nothing more to report.
    return answer === undefined ? { removedBytes: null, sharedBytes: null } : fromWire(answer);
  }

  /**
   * The end of `await using`: deletes it, or saves it with `keep`. A sandbox that was already deleted or saved stays
   * so.
   */
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
