import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import type { SandboxHandle, SandboxSpec, SnapshotPayload } from "../../../../src/backends/backend.ts";
import type { GvisorBackend, GvisorBackendOptions } from "../../../../src/backends/gvisor/gvisor-backend.ts";
import { newRequest } from "../../contract/context.ts";
import { eventually } from "../../contract/programs.ts";
import type { TestEngine } from "./engine.ts";
import { NOTHING, sandboxLeftovers } from "./leftovers.ts";
import { openGvisor, type OpenedBackend } from "./open-backend.ts";

/** A backend for the tests of one suite. At the end its sandboxes are deleted, and nothing of them may be left. */
export class GvisorFixture {
  readonly #handles: SandboxHandle[] = [];
  readonly #folders: string[] = [];
  #opened: OpenedBackend | undefined;

  constructor(engine: TestEngine, overrides?: () => Promise<Partial<GvisorBackendOptions>>) {
    beforeAll(async () => {
      this.#opened = await openGvisor(engine, await overrides?.());
    });
    afterAll(async () => {
      await Promise.all(this.#handles.map((handle) => handle.destroy()));
      await this.expectNothingLeft();
      await this.#opened?.close();
      for (const folder of this.#folders) await rm(folder, { recursive: true, force: true });
    });
  }

  get backend(): GvisorBackend {
    return this.opened.backend;
  }

  get opened(): OpenedBackend {
    if (this.#opened === undefined) throw new Error("The suite has not started.");
    return this.#opened;
  }

  async acquire(spec: Partial<SandboxSpec> = {}): Promise<SandboxHandle> {
    return this.keep(await this.backend.acquire(newRequest(spec)));
  }

  async restore(snapshot: SnapshotPayload, spec: Partial<SandboxSpec> = {}): Promise<SandboxHandle> {
    return this.keep(await this.backend.acquireFromSnapshot(newRequest(spec), snapshot));
  }

  async save(handle: SandboxHandle, leaveRunning = true): Promise<SnapshotPayload> {
    return handle.snapshot(await this.folder(), { mode: "full", leaveRunning });
  }

  keep(handle: SandboxHandle): SandboxHandle {
    this.#handles.push(handle);
    return handle;
  }

  async folder(): Promise<string> {
    const path = await mkdtemp(join(tmpdir(), "sandboxer-gvisor-test-"));
    this.#folders.push(path);
    return path;
  }

  /** Checks ended sandboxes; no other may be running. Clean-up continues after `destroy`. */
  async expectNothingLeft(): Promise<void> {
    const left = (): string => JSON.stringify(sandboxLeftovers(this.opened.runDirectory), null, 2);
    const nothing = JSON.stringify(NOTHING, null, 2);
    await eventually(() => left() === nothing, "the end of clean-up").catch(() => {
      throw new Error(`Sandboxes have left behind: ${left()}`);
    });
  }
}
