import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type {
  AcquireRequest,
  PreparedState,
  SandboxHandle,
  SandboxSpec,
  SnapshotPayload,
  WarmFigures,
} from "../../../../src/backends/backend.ts";
import type { GvisorBackend, GvisorBackendOptions } from "../../../../src/backends/gvisor/gvisor-backend.ts";
import type { RunDirectory } from "../../../../src/backends/gvisor/run-directory.ts";
import { newRequest } from "../../contract/context.ts";
import { eventually } from "../../contract/programs.ts";
import { copyImage } from "../support/copy-image.ts";
import type { TestEngine } from "../support/engine.ts";
import { NOTHING, sandboxLeftovers } from "../support/leftovers.ts";
import { openGvisor, type OpenedBackend } from "../support/open-backend.ts";
import { warmOptions } from "../support/warm-options.ts";

/** The stored form of a sandbox. */
export class SavedState implements PreparedState {
  readonly id = randomUUID();
  readonly sizeBytes: number;
  loads = 0;
  failure: Error | undefined;
  readonly #snapshot: SnapshotPayload;

  private constructor(snapshot: SnapshotPayload) {
    this.#snapshot = snapshot;
    this.sizeBytes = snapshot.members.reduce((sum, member) => sum + member.sizeBytes, 0);
  }

  static async of(handle: SandboxHandle, mode: "full" | "filesystem"): Promise<SavedState> {
    const folder = await mkdtemp(join(tmpdir(), "sandboxer-warm-test-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    return new SavedState(await copyImage(folder, await handle.snapshot(folder, { mode, leaveRunning: true })));
  }

  async load(folder: string): Promise<SnapshotPayload> {
    this.loads += 1;
    if (this.failure !== undefined) throw this.failure;
    return copyImage(folder, this.#snapshot);
  }
}

/** A backend for one test. At its end nothing may be left of its sandboxes, used or unused. */
export class WarmLab {
  readonly #opened: OpenedBackend;

  private constructor(opened: OpenedBackend) {
    this.#opened = opened;
  }

  static async open(engine: TestEngine, more: Partial<GvisorBackendOptions> = {}): Promise<WarmLab> {
    const opened = await openGvisor(engine, { ...more, warm: warmOptions() });
    onTestFinished(async () => {
      await opened.backend.close();
      const left = JSON.stringify(sandboxLeftovers(opened.runDirectory), null, 2);
      if (left !== JSON.stringify(NOTHING, null, 2)) throw new Error(`Sandboxes have left behind: ${left}`);
      await opened.close();
    });
    return new WarmLab(opened);
  }

  get backend(): GvisorBackend {
    return this.#opened.backend;
  }

  get runDirectory(): RunDirectory {
    return this.#opened.runDirectory;
  }

  get figures(): WarmFigures {
    return this.backend.warm!;
  }

  /** This many are ready, and none is being created. */
  untilReady(count: number): Promise<void> {
    const { preparing, ready } = this.figures;
    const what = `${count} that are ready, not ${ready} and ${preparing} on their way`;
    return eventually(() => this.figures.ready >= count && this.figures.preparing === 0, what);
  }

  take(request: AcquireRequest): Promise<SandboxHandle> {
    return this.backend.acquire(request);
  }

  acquire(spec: Partial<SandboxSpec> = {}, tenant?: string): Promise<SandboxHandle> {
    return this.take({ ...newRequest(spec), ...(tenant === undefined ? {} : { tenant }) });
  }

  /** A sandbox from the pool. */
  async warm(spec: Partial<SandboxSpec> = {}, tenant?: string): Promise<SandboxHandle> {
    await (await this.acquire(spec, tenant)).destroy();
    await this.untilReady(1);
    const before = this.figures.handedOut;
    const handle = await this.acquire(spec, tenant);
    if (this.figures.handedOut !== before + 1) throw new Error("It was not started ahead.");
    return handle;
  }

  /** A copy of a sandbox, which keeps running. */
  async restore(handle: SandboxHandle, spec: Partial<SandboxSpec>): Promise<SandboxHandle> {
    const folder = await mkdtemp(join(tmpdir(), "sandboxer-warm-test-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const snapshot = await handle.snapshot(folder, { mode: "full", leaveRunning: true });
    return this.backend.acquireFromSnapshot(newRequest(spec), snapshot);
  }
}
