import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CreateSandbox, Sandbox, SandboxState } from "@daytona/api-client";
import type {
  AcquireRequest,
  SandboxBackend,
  SandboxHandle,
  SnapshotPayload,
} from "../../../../src/backends/backend.ts";
import { Refusal } from "./exchange.ts";
import { Sessions } from "./sessions.ts";
import { Terminals } from "./terminals.ts";

/** A sandbox of the test server: the vendor's record of it, and a real sandbox of another backend behind it. */
export class VendorSandboxRecord {
  readonly id = randomUUID();
  readonly record: Sandbox;
  readonly #backend: SandboxBackend;
  readonly #request: AcquireRequest;
  readonly #folders: string[] = [];
  #handle: SandboxHandle | undefined;
  #kept: SnapshotPayload | undefined;
  /** Created at each start: the daemon runs as long as the sandbox. */
  sessions: Sessions | undefined;
  terminals: Terminals | undefined;

  constructor(
    backend: SandboxBackend,
    body: CreateSandbox,
    facts: { organizationId: string; toolboxProxyUrl: string },
  ) {
    this.#backend = backend;
    this.#request = {
      sandboxId: randomUUID(),
      spec: { env: { ...body.env }, resources: {}, network: "none" },
    };
    const now = new Date().toISOString();
    this.record = {
      id: this.id,
      name: body.name ?? this.id,
      user: "daytona",
      env: { ...body.env },
      labels: { ...body.labels },
      public: false,
      networkBlockAll: body.networkBlockAll ?? false,
      target: body.target ?? "us",
      cpu: body.cpu ?? 1,
      gpu: 0,
      memory: body.memory ?? 1,
      disk: body.disk ?? 3,
      state: "creating",
      desiredState: "started",
      sandboxClass: "container",
      autoStopInterval: body.autoStopInterval ?? 15,
      createdAt: now,
      updatedAt: now,
      ...(body.snapshot === undefined ? {} : { snapshot: body.snapshot }),
      ...facts,
    };
  }

  get handle(): SandboxHandle {
    if (this.#handle === undefined || this.record.state !== "started") {
      throw new Refusal(400, `Sandbox ${this.id} is not running`);
    }
    return this.#handle;
  }

  setState(state: SandboxState, errorReason?: string): void {
    this.record.state = state;
    this.record.updatedAt = new Date().toISOString();
    if (errorReason !== undefined) this.record.errorReason = errorReason;
  }

  start(from?: SnapshotPayload): Promise<void> {
    return this.#change(async () => {
      const saved = from ?? this.#kept;
      this.#handle =
        saved === undefined
          ? await this.#backend.acquire(this.#request)
          : await this.#backend.acquireFromSnapshot({ ...this.#request, sandboxId: randomUUID() }, saved);
      this.sessions = new Sessions(this.#handle);
      this.terminals = new Terminals(this.#handle);
      return "started";
    });
  }

  /** Files are kept, processes are not. */
  stop(): Promise<void> {
    return this.#change(async () => {
      this.#kept = await this.save();
      await this.#handle?.destroy();
      this.#handle = undefined;
      return "stopped";
    });
  }

  async save(): Promise<SnapshotPayload> {
    const folder = await mkdtemp(join(tmpdir(), "daytona-test-"));
    this.#folders.push(folder);
    if (this.#handle === undefined) throw new Refusal(400, "Sandbox is not running");
    return this.#handle.snapshot(folder, { mode: "filesystem", leaveRunning: true });
  }

  async destroy(): Promise<void> {
    this.setState("destroyed");
    await this.#handle?.destroy();
    this.#handle = undefined;
  }

  async removeFolders(): Promise<void> {
    for (const folder of this.#folders) await rm(folder, { recursive: true, force: true });
  }

  async #change(work: () => Promise<SandboxState>): Promise<void> {
    try {
      const state = await work();
      // A sandbox that was deleted meanwhile stays deleted.
      if (this.record.state === "destroyed") return await this.#handle?.destroy();
      this.setState(state);
    } catch (thrown) {
      this.setState("error", thrown instanceof Error ? thrown.message : String(thrown));
    }
  }
}
