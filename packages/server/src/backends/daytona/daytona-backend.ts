import { SandboxerError } from "@sandboxer/protocol";
import type { CreateSandbox } from "@daytona/api-client";
import type {
  AcquireRequest,
  Capabilities,
  Health,
  SandboxBackend,
  SandboxHandle,
  SnapshotPayload,
} from "../backend.ts";
import type { CallOptions } from "../../support/call-options.ts";
import type { DaytonaSandbox } from "./api-schemas.ts";
import { chooseCandidates } from "./choose-candidates.ts";
import { checkSpec, createBody } from "./create-body.ts";
import { DaytonaApi } from "./daytona-api.ts";
import { DaytonaConnection } from "./daytona-connection.ts";
import type { DaytonaOptions } from "./daytona-options.ts";
import { DaytonaHandle } from "./daytona-handle.ts";
import { LABELS, lookupLabels, type Maker } from "./labels.ts";
import { phaseOf } from "./sandbox-state.ts";
import { manifestOf, openPayload } from "./snapshot-manifest.ts";
import { Toolbox } from "./toolbox/toolbox.ts";
import { stays } from "../stays.ts";
import { DAYTONA } from "../traits.ts";
import { failed, type Waiter, waitForPhase } from "./wait-for-state.ts";

/** Sandboxes at Daytona: the control plane creates, starts and stops them, the toolbox of each runs programs inside. */
export class DaytonaBackend implements SandboxBackend {
  readonly name = DAYTONA.name;
  readonly capabilities: Capabilities = DAYTONA.capabilities;
  readonly loads = DAYTONA.loads;
  readonly keeps = DAYTONA.keeps;
  readonly #connection: DaytonaConnection;
  readonly #api: DaytonaApi;
  readonly #waiter: Waiter;
  readonly #live = new Map<string, DaytonaHandle>();
  readonly #maker: Maker | undefined;
  readonly #onClosed: DaytonaOptions["onClosed"];

  constructor(options: DaytonaOptions) {
    this.#maker = options.maker;
    this.#onClosed = options.onClosed;
    this.#connection = new DaytonaConnection(options);
    this.#api = new DaytonaApi(this.#connection.api);
    this.#waiter = { api: this.#api, clock: this.#connection.clock, timing: this.#connection.timing };
  }

  async probe(): Promise<Health> {
    const { apiUrl, organizationId, target } = this.#connection;
    const details = {
      api: apiUrl,
      ...(organizationId === undefined ? {} : { organization: organizationId }),
      ...(target === undefined ? {} : { target }),
    };
    try {
      // Lists sandboxes that cannot exist: shows whether the address, the key and the organization are right.
      await this.#api.list({ "sandboxer.probe": "1" });
      return { ok: true, summary: `Daytona answers at ${apiUrl}.`, details };
    } catch (thrown) {
      const [message, remedy] =
        thrown instanceof SandboxerError ? [thrown.message, thrown.hint] : [String(thrown), "Run `sandboxer doctor`."];
      return { ok: false, summary: message, remedy, details };
    }
  }

  async acquire(request: AcquireRequest, options: CallOptions = {}): Promise<SandboxHandle> {
    checkSpec(request.spec);
    return this.#make(request, createBody(request, { target: this.#connection.target, maker: this.#maker }), options);
  }

  async acquireFromSnapshot(
    request: AcquireRequest,
    snapshot: SnapshotPayload,
    options: CallOptions = {},
  ): Promise<SandboxHandle> {
    const { snapshot_name: snapshotName } = openPayload(snapshot, this.#connection);
    checkSpec(request.spec);
    const { target } = this.#connection;
    return this.#make(request, createBody(request, { target, maker: this.#maker, snapshot: snapshotName }), options);
  }

  async tryResume(request: AcquireRequest, options: CallOptions = {}): Promise<SandboxHandle | undefined> {
    const found = await this.#api.list(lookupLabels(request), { signal: options.signal });
    const { fitting, stale } = chooseCandidates(found, request.identity, this.#connection.clock.wallMs());
    const unwanted = [...stale];
    let resumed: DaytonaHandle | undefined;
    for (const sandbox of fitting) {
      if (resumed === undefined) resumed = await this.#resume(request, sandbox, options);
      if (resumed?.vendorId !== sandbox.id) unwanted.push(sandbox);
    }
    await Promise.all(unwanted.map(({ id }) => this.#api.destroy(id)));
    return resumed;
  }

  /** A captured workspace is complete in the snapshot itself; the other kind only has a name. */
  async forgetSnapshot(snapshot: SnapshotPayload, options: CallOptions = {}): Promise<void> {
    if (snapshot.kind !== "daytona-snapshot") return;
    try {
      const { snapshot_name: snapshotName } = openPayload(snapshot, this.#connection);
      await this.#api.removeSnapshot(snapshotName, { signal: options.signal });
    } catch (thrown) {
      throw stays(`The snapshot ${manifestOf(snapshot)?.snapshot_name} at Daytona`, thrown);
    }
  }

  /** Stops, and never deletes: the next process finds what this one leaves. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.#live.values()].map((handle) => handle.stop()));
    await this.#onClosed?.();
  }

  /** A sandbox whose creation failed, was cancelled or was never answered is deleted by its name. */
  async #make(request: AcquireRequest, body: CreateSandbox, options: CallOptions): Promise<DaytonaHandle> {
    options.signal?.throwIfAborted();
    const { requestTimeoutMs, changeTimeoutMs } = this.#connection.timing;
    const timeoutMs = Math.max(requestTimeoutMs, changeTimeoutMs);
    let handle: DaytonaHandle | undefined;
    try {
      const made = await this.#api.create(body, { signal: options.signal, timeoutMs });
      handle = this.#open(request, await this.#started(made, options));
      await handle.prepare(options);
      return handle;
    } catch (thrown) {
      handle?.letGo("it could not be created.");
      await this.#api.destroy(body.name ?? "").catch(() => {
        // The first failure is reported; Daytona's auto-stop handles leftovers.
      });
      throw thrown;
    }
  }

  /** Undefined if it does not start, or does not answer: then it is replaced. */
  async #resume(
    request: AcquireRequest,
    sandbox: DaytonaSandbox,
    options: CallOptions,
  ): Promise<DaytonaHandle | undefined> {
    const known = this.#live.get(sandbox.id);
    if (known !== undefined && phaseOf(sandbox.state) === "running") return known;
    known?.letGo("Daytona has stopped it.");
    let handle: DaytonaHandle | undefined;
    try {
      await this.#hold(request, sandbox, options);
      handle = this.#open(request, await this.#started(sandbox, options));
      await handle.prepare(options);
      await handle.adoptProcesses();
      return handle;
    } catch (thrown) {
      handle?.letGo("it could not be resumed.");
      options.signal?.throwIfAborted();
      if (await this.#isToBlame(sandbox, thrown)) return undefined;
      throw thrown;
    }
  }

  /** From here on it belongs to this process and its installation: recovery by others ignores it. */
  async #hold({ identity }: AcquireRequest, { id, labels }: DaytonaSandbox, { signal }: CallOptions): Promise<void> {
    const maker = this.#maker;
    if (maker === undefined || labels?.[LABELS.instance] === maker.instanceId) return;
    const owner = identity?.owner ?? maker.owner;
    const marks = { ...labels, [LABELS.owner]: owner, [LABELS.instance]: maker.instanceId };
    await this.#api.replaceLabels(id, marks, { signal });
  }

  /** A sandbox is replaced only for its own faults, not for an outage of Daytona, a refused key or a rate limit. */
  async #isToBlame({ id }: DaytonaSandbox, thrown: unknown): Promise<boolean> {
    if (!(thrown instanceof SandboxerError)) return false;
    if (thrown.code === "sandbox_failed" || thrown.code === "sandbox_not_found") return true;
    if (thrown.code !== "timeout" && thrown.code !== "backend_unavailable") return false;
    // If the control plane says that it runs, a silent toolbox is the sandbox's own fault.
    const now = await this.#api.get(id).catch(() => undefined);
    return now !== undefined && phaseOf(now.state) === "running";
  }

  async #started(sandbox: DaytonaSandbox, options: CallOptions): Promise<DaytonaSandbox> {
    const settled = await waitForPhase(this.#waiter, sandbox, ["running", "resting"], options);
    if (phaseOf(settled.state) === "running") return settled;
    const starting = await this.#api.start(settled.id, { signal: options.signal });
    if (phaseOf(starting.state) === "failed") throw failed(starting);
    // The response may still have the old state.
    const after = phaseOf(starting.state) === "resting" ? { ...starting, state: "starting" } : starting;
    return waitForPhase(this.#waiter, after, ["running"], options);
  }

  #open(request: AcquireRequest, sandbox: DaytonaSandbox): DaytonaHandle {
    const http = this.#connection.toolbox(sandbox.id, sandbox.toolboxProxyUrl ?? undefined);
    const handle = new DaytonaHandle({
      request,
      sandbox,
      api: this.#api,
      connection: this.#connection,
      waiter: this.#waiter,
      toolbox: new Toolbox(http),
      onEnded: () => void this.#live.delete(sandbox.id),
    });
    this.#live.set(sandbox.id, handle);
    return handle;
  }
}
