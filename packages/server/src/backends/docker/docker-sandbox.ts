import { setTimeout as delay } from "node:timers/promises";
import { SandboxerError } from "@sandboxer/protocol";
import type { AgentClient } from "../agent/agent-client.ts";
import { AgentSandbox, DESTROYED, OUT_OF_MEMORY } from "../agent/agent-sandbox.ts";
import type { SandboxEnd, SandboxHandle, SandboxStats, SnapshotOptions, SnapshotPayload } from "../backend.ts";
import { sandboxEnded } from "../sandbox-ended.ts";
import type { CheckpointPlace } from "./checkpoint-files.ts";
import { exportCheckpoint, saveContainer } from "./checkpoint-snapshot.ts";
import type { Container } from "./engine/answers.ts";
import { commitContainer, exportSnapshot } from "./image-snapshot.ts";
import { Stillness } from "./stillness.ts";
import { wakeToEnd } from "./wake-to-end.ts";

const RUNNING: ReadonlySet<Container["State"]["Status"]> = new Set(["running", "paused", "restarting"]);
/** How long the engine may take to report a container's end, after its streams ended. */
const LEAVING_MS = 5_000;
const STOPPED: SandboxEnd = { reason: "destroyed", message: "The sandbox was stopped; it can be resumed." };

/** The engine and its settings, shared by all sandboxes there. */
export interface SandboxPlace extends CheckpointPlace {
  readonly architecture: string;
  readonly engineVersion: string;
  /** See `checkpoint-trial.ts`. */
  readonly whyNoMemory: () => string | undefined;
  readonly onEnded: (sandbox: DockerSandbox) => void;
}

export interface DockerSandboxParts extends SandboxPlace {
  readonly sandboxId: string;
  readonly containerId: string;
  readonly agent: AgentClient;
  /** It is in a network of the engine. */
  readonly ownNetwork: boolean;
  /** An image that only this sandbox needs: it was created from a snapshot. */
  readonly snapshotImage: string | undefined;
  /** The agent's last output. */
  readonly lastWords: () => string;
}

/** One running container, and the agent inside. */
export class DockerSandbox extends AgentSandbox implements SandboxHandle {
  readonly sandboxId: string;
  readonly ended: Promise<SandboxEnd>;
  readonly #parts: DockerSandboxParts;
  readonly #ended = Promise.withResolvers<SandboxEnd>();
  readonly #stillness: Stillness;
  readonly #watch = new AbortController();
  readonly #exited: Promise<void>;
  #over = false;
  #stopping: Promise<void> | undefined;
  #destroying: Promise<void> | undefined;

  constructor(parts: DockerSandboxParts) {
    super(parts.agent);
    this.#parts = parts;
    this.sandboxId = parts.sandboxId;
    this.ended = this.#ended.promise;
    this.#stillness = new Stillness(parts.engine, parts.containerId);
    this.#exited = this.#awaitExit();
  }

  get ownNetwork(): boolean {
    return this.#parts.ownNetwork;
  }

  get containerId(): string {
    return this.#parts.containerId;
  }

  whileFrozen<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#whileAlive(this.#stillness.whileFrozen(this.#parts.agent, work));
  }

  async stats(): Promise<SandboxStats> {
    const { engine, containerId } = this.#parts;
    const [stats, container] = await this.#whileAlive(
      Promise.all([engine.stats(containerId), engine.container(containerId, { size: true })]),
    );
    const { usage, stats: parts } = stats.memory_stats;
    const cachedBytes = parts?.["total_inactive_file"] ?? parts?.["inactive_file"] ?? 0;
    return {
      memoryBytes: Math.max(0, usage - cachedBytes),
      cpuMs: Math.round(stats.cpu_stats.cpu_usage.total_usage / 1e6),
      diskBytes: container?.SizeRw ?? 0,
    };
  }

  async snapshot(into: string, options: SnapshotOptions): Promise<SnapshotPayload> {
    if (options.mode === "full") {
      const why = this.#parts.whyNoMemory();
      if (why === undefined) return this.saveAll(into, options);
      const message = `Docker saves files only here, no memory and no processes: ${why}`;
      throw new SandboxerError("not_supported", message.replace(/\.?$/, "."), {
        hint: "Take a filesystem snapshot, or use the backend gvisor.",
      });
    }
    const { engine, containerId, instanceId, architecture } = this.#parts;
    return this.#save(
      options,
      () => commitContainer(engine, containerId, instanceId),
      (image) => exportSnapshot(engine, image, into, { ...options, architecture }),
    );
  }

  /** Saves memory, processes and files, even if the engine was not tested. */
  async saveAll(into: string, options: Omit<SnapshotOptions, "mode">): Promise<SnapshotPayload> {
    const { engine, containerId, architecture, engineVersion } = this.#parts;
    const container = await this.#whileAlive(engine.container(containerId));
    if (container === undefined) throw new SandboxerError("sandbox_failed", "The sandbox's container was removed.");
    return this.#save(
      options,
      () => saveContainer(this.#parts, containerId),
      (saved) =>
        exportCheckpoint(this.#parts, container, saved, into, { ...options, architecture, engine: engineVersion }),
    );
  }

  /**
   * It is paused while the engine captures its state, and continues while that is downloaded, unless it is to stay
   * paused.
   */
  async #save<Saved>(
    options: Omit<SnapshotOptions, "mode">,
    take: () => Promise<Saved>,
    bring: (saved: Saved) => Promise<SnapshotPayload>,
  ): Promise<SnapshotPayload> {
    options.onProgress?.({ phase: "saving" });
    const stay = !options.leaveRunning;
    const beganMs = performance.now();
    const saved = await this.#whileAlive(this.#stillness.during(take, { stay }));
    if (!stay) options.onStill?.(performance.now() - beganMs);
    try {
      return await bring(saved);
    } catch (error) {
      if (stay) await this.#stillness.release().catch(() => {});
      throw error;
    }
  }

  freeze(): Promise<void> {
    return this.#whileAlive(this.#stillness.hold());
  }

  thaw(): Promise<void> {
    return this.#whileAlive(this.#stillness.letGo());
  }

  /** Everything inside ends, the files stay. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  destroy(): Promise<void> {
    this.#destroying ??= this.#destroy();
    return this.#destroying;
  }

  /** Releases it here; the container stays as it is. */
  abandon(): void {
    this.#settle({ reason: "crashed", message: "The sandbox did not start to answer." });
  }

  letGo(): void {
    this.#settle({
      reason: "destroyed",
      message: "This server released the sandbox; it keeps running at its provider.",
    });
  }

  /** The agent's stream ended: the container has ended, or the connection to the engine has. */
  async expectEnd(): Promise<void> {
    const { engine, containerId } = this.#parts;
    await Promise.race([this.#exited, delay(LEAVING_MS, undefined, { ref: false })]);
    if (this.#over) return;
    const container = await engine.container(containerId).catch(() => undefined);
    if (container !== undefined && !RUNNING.has(container.State.Status)) return this.#settle(this.#endOf(container));
    const message = `The connection to the Docker engine at ${engine.address} was lost; the container keeps running.`;
    this.#settle({ reason: "crashed", message });
  }

  /** The agent has failed, or another server took it over; in that case the container is no longer ours. */
  async agentFailed(error: SandboxerError): Promise<void> {
    if (this.#over) return;
    this.#settle({ reason: "crashed", message: error.message });
    if (error.details["replaced"] === true) return;
    await this.#parts.engine.stop(this.#parts.containerId).catch(() => {});
  }

  async #stop(): Promise<void> {
    this.#settle(STOPPED);
    await this.#wakeToEnd();
    await this.#parts.engine.stop(this.#parts.containerId);
  }

  async #destroy(): Promise<void> {
    this.#settle(DESTROYED);
    const { engine, containerId, snapshotImage } = this.#parts;
    await this.#wakeToEnd();
    await engine.removeContainer(containerId);
    if (snapshotImage !== undefined) await engine.removeImage(snapshotImage);
  }

  async #wakeToEnd(): Promise<void> {
    if (!this.#stillness.isStill) return;
    const { engine, containerId } = this.#parts;
    const container = await engine.container(containerId);
    if (container !== undefined) await wakeToEnd(engine, container);
  }

  async #awaitExit(): Promise<void> {
    const { engine, containerId } = this.#parts;
    try {
      await engine.wait(containerId, { signal: this.#watch.signal });
      this.#settle(this.#endOf(await engine.container(containerId)));
    } catch {
      // Aborted, or the engine is unavailable, which the agent's streams will show.
    }
  }

  #endOf(container: Container | undefined): SandboxEnd {
    if (container === undefined) return { reason: "crashed", message: "The sandbox's container was removed." };
    if (container.State.OOMKilled) return OUT_OF_MEMORY;
    const words = this.#parts.lastWords().trim().split("\n").at(-1) ?? "";
    const message = `The sandbox ended unexpectedly (${container.State.ExitCode})${words === "" ? "." : `: ${words}`}`;
    return { reason: "crashed", message };
  }

  /** Calls on a sandbox that has ended fail with its reason. */
  async #whileAlive<Result>(work: Promise<Result>): Promise<Result> {
    try {
      const result = await work;
      if (this.#parts.agent.failure === undefined) return result;
    } catch (error) {
      throw this.#parts.agent.failure ?? error;
    }
    throw this.#parts.agent.failure;
  }

  /** The first reason wins. */
  #settle(end: SandboxEnd): void {
    if (this.#over) return;
    this.#over = true;
    this.#watch.abort();
    this.#ended.resolve(end);
    this.#parts.agent.fail(sandboxEnded(end));
    this.#parts.onEnded(this);
  }
}
