import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { CallOptions } from "../../support/call-options.ts";
import { unlessAborted } from "../../support/unless-aborted.ts";
import type { AgentBinary } from "../agent-binary.ts";
import type { Platform, SetupContext } from "../context.ts";
import { choosePlatform, type Choice, type SelfTest } from "../platform.ts";
import type { EngineFacts } from "../../backends/backend.ts";
import { withSetupLock } from "../prepare-gvisor.ts";
import { cachedEnginePath } from "./cache.ts";
import { fetchEngine, NEWEST_SOURCES, sourcesOf } from "./engine.ts";
import { localEngines } from "./local-sources.ts";
import type { Engine, EngineSource } from "./source.ts";
import { isOutdated, lacks, NEWEST_ENGINE_VERSION } from "./version.ts";

/** An engine that works on this machine, on this platform. */
export interface TestedEngine extends Engine, Choice {}

/** The engine that wrote an image. */
export interface WantedEngine {
  readonly version: string;
  readonly sha256: string;
  readonly platform: Platform;
}

export interface LibraryOptions {
  /** Whether engines may be fetched or built. */
  readonly fetch: boolean;
  /** How long a restore waits for a fetch or a build, which continues afterwards. */
  readonly waitMs?: number;
  readonly sourcesOf?: (version: string, sha256: string) => readonly EngineSource[];
  readonly newestSources?: readonly EngineSource[];
  readonly selfTest?: SelfTest;
}

const WAIT_MS = 60_000;

/**
 * The engines of this machine, side by side. New sandboxes use the default, which stays the same until the server
 * restarts. An image is restored by the engine that wrote it, which is fetched or built if it is missing. Every engine
 * passes the self-test before its first use.
 */
export class EngineLibrary {
  readonly #context: SetupContext;
  readonly #agent: AgentBinary;
  readonly #options: LibraryOptions;
  readonly #facts = new Map<string, EngineFacts>();
  /** By version. The newest is fetched under the name of its build, and may be the official release. */
  readonly #fetching = new Map<string, Promise<Engine>>();
  readonly #tested = new Map<string, Promise<TestedEngine>>();
  readonly #stop = new AbortController();

  constructor(context: SetupContext, agent: AgentBinary, current: TestedEngine, options: LibraryOptions) {
    this.#context = { ...context, signal: this.#stop.signal };
    this.#agent = agent;
    this.#options = options;
    const { platform, control, version } = current;
    this.#note(current, { platform, control, state: "default", message: lacks(version) });
  }

  get facts(): readonly EngineFacts[] {
    return [...this.#facts.values()];
  }

  get fetches(): boolean {
    return this.#options.fetch;
  }

  /** Notes what else is installed, and fetches or builds the newest tested engine in the background if it is newer. */
  async open(current: Engine): Promise<void> {
    for (const { version, where } of await localEngines(this.#context, this.#stop.signal)) {
      if (!this.#facts.has(version)) this.#note({ version, source: where }, {});
    }
    if (this.#options.fetch && this.#context.runscPath === undefined && isOutdated(current.version)) {
      void this.#fetchNewest(current);
    }
  }

  /** The engine that wrote an image. Waits for a fetch or a build, within limits. */
  async find(wanted: WantedEngine, options: CallOptions = {}): Promise<TestedEngine> {
    if (wanted.platform === "kvm" && this.#context.platform !== "kvm") {
      throw incompatible("it was saved on platform kvm, which this server tries only with --platform kvm");
    }
    const key = JSON.stringify([wanted.version, wanted.sha256, wanted.platform]);
    const known = this.#tested.get(key);
    if (known !== undefined) return known;
    const engine = (await this.#installed(wanted)) ?? (await this.#fetched(wanted, options));
    const testing = this.#tested.get(key) ?? this.#test(engine, wanted.platform);
    this.#tested.set(key, testing);
    try {
      return await testing;
    } catch (error) {
      this.#tested.delete(key);
      throw error;
    }
  }

  /** Ends fetches and builds. */
  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.allSettled(this.#fetching.values());
  }

  /** If there are several builds of one version, the one that wrote the image. */
  async #installed({ version, sha256 }: WantedEngine): Promise<Engine | undefined> {
    const { signal } = this.#stop;
    const candidates = (await localEngines(this.#context, signal)).filter((local) => local.version === version);
    const engines = (await Promise.all(candidates.map((local) => local.read(signal)))).filter(
      (engine) => engine != null,
    );
    return engines.find((engine) => engine.sha256 === sha256) ?? engines[0];
  }

  async #test(engine: Engine, platform: Platform): Promise<TestedEngine> {
    const context = { ...this.#context, platform };
    let choice: Choice;
    try {
      choice = await withSetupLock(context, () => choosePlatform(context, engine, this.#agent, this.#options.selfTest));
    } catch (thrown) {
      throw incompatible(
        `runsc ${engine.version}, which saved it, does not work on this machine: ${(thrown as Error).message}`,
      );
    }
    if (this.#facts.get(engine.version)?.state !== "default") this.#note(engine, { ...choice, state: "used" });
    return { ...engine, ...choice };
  }

  async #fetched(wanted: WantedEngine, { signal, onProgress }: CallOptions): Promise<Engine> {
    const { version, sha256 } = wanted;
    const sources = (this.#options.sourcesOf ?? sourcesOf)(version, sha256);
    if (!this.#options.fetch) throw this.#missing(version, "The server was started with --no-fetch-engines.");
    if (sources.length === 0) throw this.#missing(version, "sandboxer has no tested way to get it.");
    onProgress?.({ phase: "fetching engine" });
    const fetching = this.#fetch(version, sources)
      .then((engine) => (engine.version === version ? engine : this.#fetch(version, sources)))
      .catch((thrown: unknown) => {
        throw this.#missing(version, (thrown as Error).message);
      });
    const { waitMs = WAIT_MS } = this.#options;
    const late = AbortSignal.timeout(waitMs);
    try {
      return await unlessAborted(fetching, signal === undefined ? late : AbortSignal.any([late, signal]));
    } catch (error) {
      if (!late.aborted || signal?.aborted === true) throw error;
      fetching.catch(() => {});
      throw new SandboxerError(
        "backend_unavailable",
        `The image was saved by runsc ${version}, which is being fetched or built on this server.`,
        { hint: "Try again in some minutes; `sandboxer server` lists the engines." },
      );
    }
  }

  async #fetchNewest(current: Engine): Promise<void> {
    try {
      const engine = await this.#fetch(NEWEST_ENGINE_VERSION, this.#options.newestSources ?? NEWEST_SOURCES);
      const message = `New sandboxes use it after the next restart of the server; until then, runsc ${current.version}.`;
      this.#note(engine, { state: "ready", message });
      this.#say("done", `runsc ${engine.version} is ready. ${message}`);
    } catch (thrown) {
      if (this.#stop.signal.aborted) return;
      const missing = lacks(current.version) ?? `runsc ${current.version} is older than the newest tested one`;
      this.#say("skipped", `Keeping runsc ${current.version}: ${asSandboxerError(thrown).message} Note: ${missing}.`);
    }
  }

  /** One fetch or build of a version at a time, in this process and on this machine. */
  #fetch(name: string, sources: readonly EngineSource[]): Promise<Engine> {
    const running = this.#fetching.get(name);
    if (running !== undefined) return running;
    this.#note({ version: name, source: "none" }, { state: "fetching" });
    const fetching = fetchEngine(this.#context, name, sources, "")
      .then((engine) => {
        this.#facts.delete(name);
        this.#note(engine, {});
        return engine;
      })
      .catch((thrown: unknown) => {
        this.#note({ version: name, source: "none" }, { state: "failed", message: (thrown as Error).message });
        throw thrown;
      })
      .finally(() => this.#fetching.delete(name));
    this.#fetching.set(name, fetching);
    return fetching;
  }

  #missing(version: string, why: string): SandboxerError {
    const { cacheDirectory } = this.#context;
    const looked = `Looked for it at ${cachedEnginePath(cacheDirectory, version)} and on PATH.`;
    const command = version === NEWEST_ENGINE_VERSION ? "sandboxer setup --newest" : undefined;
    const otherwise = `Put a runsc of that version on the server's PATH, or restore on a server that has it.`;
    const hint = command === undefined ? otherwise : `Install Go 1.26 or newer and run \`${command}\`. ${otherwise}`;
    return incompatible(`it was saved by runsc ${version}, which is not on this machine. ${looked} ${why}`, hint);
  }

  #note(
    { version, source }: Pick<Engine, "version" | "source">,
    { platform, control, state = "installed", message }: Partial<Omit<EngineFacts, "version" | "source">>,
  ): void {
    this.#facts.set(version, { version, source, platform, control, state, message });
  }

  #say(state: "done" | "skipped", message: string): void {
    this.#context.report({ name: "newest engine", state, message, elapsedMs: 0 });
  }
}

function incompatible(difference: string, hint?: string): SandboxerError {
  return new SandboxerError(
    "image_incompatible",
    `The image cannot run on this server: ${difference}.`.replace(/\.\.$/, "."),
    {
      ...(hint === undefined ? {} : { hint }),
      details: { differences: [difference] },
    },
  );
}
