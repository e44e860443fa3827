import { availableParallelism, loadavg, totalmem } from "node:os";
import type { CallOptions } from "../../../support/call-options.ts";
import type { Clock } from "../../../support/clock.ts";
import type { AcquireRequest, PreparedState, WarmFigures } from "../../backend.ts";
import type { GvisorSandbox } from "../gvisor-sandbox.ts";
import type { SandboxStarter } from "../sandbox-starter.ts";
import type { Recipe } from "./warm-group.ts";
import { isSmall } from "./state-size.ts";
import { stateKey, stateKeyStart, warmKey, type WarmDefaults } from "./warm-key.ts";
import { WarmPool, type Room } from "./warm-pool.ts";

/** Memory reserved for users' sandboxes: this share, and at least this many bytes. */
const FREE_SHARE = 0.1;
const FREE_BYTES = 512 * 1024 * 1024;
/** More runnable programs per CPU than this are too many to start more. */
const LOAD_PER_PROCESSOR = 4;

export interface WarmOptions {
  /** The maximum size of the pool. */
  readonly max: number;
  /** The maximum number of sandboxes on the server, including these. */
  readonly maxSandboxes: number;
  /** How many sandboxes of all backends are in use or being created. Absent: gVisor's. */
  readonly sandboxes?: (() => number) | undefined;
  readonly clock: Clock;
  readonly onProblem: (message: string, error: unknown) => void;
  /** Absent: measured on this machine. */
  readonly room?: () => Room;
}

export interface WarmSource {
  readonly defaults: WarmDefaults;
  /** How many sandboxes are in use. */
  readonly live: () => number;
  readonly starter: Pick<SandboxStarter, "freshAhead" | "ownsNetwork" | "stateAhead">;
}

/** Not handed out yet. */
const NOBODY = "warm";

/** The warm pool of gVisor sandboxes. No client code has run in them. */
export class WarmSandboxes {
  readonly #source: WarmSource;
  readonly #pool: WarmPool<GvisorSandbox>;
  /** How many more sandboxes fit beside those in use. */
  readonly #places: () => number;

  constructor(options: WarmOptions, source: WarmSource) {
    this.#source = source;
    const { maxSandboxes, sandboxes = source.live, room = machineRoom } = options;
    this.#places = () => maxSandboxes - Math.max(sandboxes(), source.live());
    this.#pool = new WarmPool({
      ...options,
      room: () => {
        if (this.#places() <= 0) return "short";
        return this.#pool.stock >= this.#places() ? "busy" : room();
      },
    });
  }

  get figures(): WarmFigures {
    return this.#pool.figures;
  }

  /** The requested fresh sandbox, if a pooled one can become it. */
  async take(request: AcquireRequest, options: CallOptions): Promise<GvisorSandbox | undefined> {
    const { defaults, starter } = this.#source;
    const key = this.#mayPool(request) ? warmKey(request, defaults) : undefined;
    if (key === undefined) return undefined;
    const anybodys = withoutAsker(request);
    return this.#take({ key, make: (how) => starter.freshAhead(anybodys, how.signal, how.hurry) }, request, options);
  }

  /** The same for one with a saved state. Most states are requested once, so the first request does not count. */
  async takePrepared(
    request: AcquireRequest,
    state: PreparedState,
    options: CallOptions,
  ): Promise<GvisorSandbox | undefined> {
    const { defaults, starter } = this.#source;
    const key = this.#mayPool(request) ? stateKey(request, state.id, defaults) : undefined;
    // A state that is too large is never preloaded, so nobody waits for one.
    if (key === undefined || !isSmall(state.sizeBytes)) return undefined;
    const anybodys = withoutAsker(request);
    const recipe: Recipe<GvisorSandbox> = {
      key,
      uncounted: 1,
      make: (how) => starter.stateAhead(anybodys, state, how.signal, how.hurry),
    };
    return this.#take(recipe, request, options);
  }

  /** Before a new one is created: ready ones give up their place if there is no other, and have ended then. */
  async giveWay(): Promise<void> {
    await this.#pool.keepAtMost(this.#places());
  }

  forget(stateId: string): void {
    const start = stateKeyStart(stateId);
    this.#pool.forget((key) => key.startsWith(start));
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  /** A network of its own has an address, which is chosen when the sandbox is created. */
  #mayPool({ skipWarmPool, spec }: AcquireRequest): boolean {
    return skipWarmPool !== true && !this.#source.starter.ownsNetwork(spec.network);
  }

  #take(
    recipe: Recipe<GvisorSandbox>,
    request: AcquireRequest,
    options: CallOptions,
  ): Promise<GvisorSandbox | undefined> {
    return this.#pool.take(recipe, (sandbox) => sandbox.become(request, options), options);
  }
}

/** Nothing of the current caller is kept for the next. */
function withoutAsker({ spec: { image, user, resources } }: AcquireRequest): AcquireRequest {
  const chosen = { ...(image === undefined ? {} : { image }), ...(user === undefined ? {} : { user }) };
  const spec = { ...chosen, env: {}, resources, network: "none" as const };
  return { sandboxId: NOBODY, spec };
}

/** Whether this machine has capacity for sandboxes that nobody has requested yet. */
function machineRoom(): Room {
  const limit = process.constrainedMemory();
  const memoryBytes = limit > 0 ? Math.min(limit, totalmem()) : totalmem();
  if (process.availableMemory() < Math.max(FREE_BYTES, memoryBytes * FREE_SHARE)) return "short";
  return (loadavg()[0] ?? 0) > LOAD_PER_PROCESSOR * availableParallelism() ? "busy" : "free";
}
