import type { Duplex } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";
import type {
  AcquireRequest,
  Capabilities,
  Health,
  MachineFacts,
  SandboxBackend,
  SandboxHandle,
  SandboxSpec,
  SnapshotPayload,
  StateNeeds,
} from "../backend.ts";
import type { CallOptions } from "../../support/call-options.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import { type FakeEngine, FakeHandle, type FakeService } from "./fake-handle.ts";
import { checkSnapshot, readSnapshot } from "./fake-snapshot.ts";
import { Faults } from "./faults.ts";
import { Machine, type MachineState } from "./machine/machine.ts";

export interface FakeBackendOptions {
  /** Another name, for a second one beside the first. */
  readonly name?: string;
  /** The kinds of snapshots that it loads; absent: its own. */
  readonly loads?: readonly string[];
  readonly clock?: Clock;
  /** Written into snapshots and compared before one is loaded. */
  readonly engineVersion?: string;
  readonly capabilities?: Partial<Capabilities>;
  readonly faults?: Faults;
}

const CAPABILITIES: Capabilities = {
  snapshot: "full",
  filesystemSnapshot: true,
  pty: true,
  files: true,
  connect: true,
  network: true,
  limits: true,
  users: true,
  selfHosted: true,
  outlivesServer: false,
};

interface Place {
  readonly request: AcquireRequest;
  readonly machine: Machine;
}

/**
 * Sandboxes in memory: a real implementation of the contract without a host process, for tests that take milliseconds.
 * `programs/compile.ts` lists the supported programs. The limits `processes`, `diskBytes` and `fileBytes` are enforced;
 * `cpus` and `memoryBytes` have no effect. At most 256 started processes are kept, 1 MiB of unread output for each.
 */
export class FakeBackend implements SandboxBackend {
  readonly name: string;
  readonly capabilities: Capabilities;
  readonly loads: readonly string[];
  readonly keeps = { hardLinks: false, extendedAttributes: true };
  readonly faults: Faults;
  /** Programs of a test that serve ports on which a process inside listens; other ports echo. */
  readonly services = new Map<number, FakeService>();
  readonly #clock: Clock;
  readonly #engine: FakeEngine;
  readonly #running = new Set<Place>();
  readonly #stopped = new Map<string, Machine>();

  constructor(options: FakeBackendOptions = {}) {
    this.name = options.name ?? "fake";
    this.loads = options.loads ?? ["fake-state"];
    this.#clock = options.clock ?? systemClock;
    this.faults = options.faults ?? new Faults(this.#clock);
    this.capabilities = { ...CAPABILITIES, ...options.capabilities };
    const { capabilities, faults, services } = this;
    this.#engine = { version: options.engineVersion ?? "1", capabilities, faults, services };
  }

  get machine(): MachineFacts {
    return { engines: [this.#engine.version] };
  }

  needsOf({ kind, requirements }: Pick<SnapshotPayload, "kind" | "requirements">): StateNeeds {
    const { engineVersion } = requirements;
    return kind === "fake-state" && typeof engineVersion === "string" ? { engine: engineVersion } : {};
  }

  /** The number of live sandboxes, for tests of clean-up. */
  get runningCount(): number {
    return this.#running.size;
  }

  async probe(): Promise<Health> {
    try {
      await this.faults.meet("probe");
      return { ok: true, summary: "Sandboxes in memory.", details: { version: this.#engine.version } };
    } catch (thrown) {
      return { ok: false, summary: thrown instanceof Error ? thrown.message : String(thrown) };
    }
  }

  async acquire(request: AcquireRequest, options: CallOptions = {}): Promise<SandboxHandle> {
    this.#checkSpec(request.spec);
    await this.faults.meet("acquire", options.signal);
    return this.#start(request);
  }

  async tryResume(request: AcquireRequest, options: CallOptions = {}): Promise<SandboxHandle | undefined> {
    await this.faults.meet("tryResume", options.signal);
    const key = keyOf(request);
    const running = [...this.#running].find((place) => keyOf(place.request) === key);
    if (running !== undefined) return new FakeHandle(request, running.machine, this.#engine);
    const stopped = this.#stopped.get(key);
    return stopped?.kept === true ? this.#start(request, { ...stopped.capture(), processes: [] }) : undefined;
  }

  async acquireFromSnapshot(
    request: AcquireRequest,
    snapshot: SnapshotPayload,
    options: CallOptions = {},
  ): Promise<SandboxHandle> {
    checkSnapshot(snapshot, this.#engine.version, request.spec);
    this.#checkSpec(request.spec);
    await this.faults.meet("acquireFromSnapshot", options.signal);
    const state = await readSnapshot(snapshot);
    options.signal?.throwIfAborted();
    return this.#start(request, state);
  }

  /** The sandbox ends as if its engine had died. */
  crash(sandboxId: string, message = "the engine died.", reason: "crashed" | "out_of_memory" = "crashed"): void {
    for (const place of this.#running) {
      if (place.request.sandboxId === sandboxId) place.machine.finishAll({ reason, message });
    }
  }

  /** Connects to a port that a sandbox serves for its server (`SandboxHandle.listen`), as a program inside would. */
  dial(sandboxId: string, port: number): Duplex {
    const place = [...this.#running].find(({ request }) => request.sandboxId === sandboxId);
    if (place === undefined) throw new SandboxerError("sandbox_not_found", "No such fake sandbox runs.");
    return place.machine.listeners.dial(port);
  }

  close(): Promise<void> {
    for (const { machine } of this.#running)
      machine.finishAll({ reason: "destroyed", message: "the backend was closed." });
    return Promise.resolve();
  }

  #start(request: AcquireRequest, state?: MachineState): SandboxHandle {
    const machine = new Machine(this.#clock, request.spec.resources, state);
    const place: Place = { request, machine };
    this.#running.add(place);
    this.#stopped.delete(keyOf(request));
    void machine.ended.then(() => {
      this.#running.delete(place);
      if (machine.kept) this.#stopped.set(keyOf(request), machine);
    });
    return new FakeHandle(request, machine, this.#engine);
  }

  #checkSpec(spec: SandboxSpec): void {
    if (spec.network !== "none" && !this.capabilities.network) {
      throw new SandboxerError("not_supported", "The fake backend has no network.");
    }
  }
}

/** The same key and the same spec: the same sandbox. Its network may change while it exists. */
function keyOf({ sandboxId, spec }: AcquireRequest): string {
  return JSON.stringify([sandboxId, spec.image, Object.entries(spec.env).toSorted(), spec.resources]);
}
