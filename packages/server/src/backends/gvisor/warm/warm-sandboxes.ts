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

/** What is left free for sandboxes that somebody has: this much of the memory, and no less than so many bytes. */
const FREE_SHARE = 0.1;
const FREE_BYTES = 512 * 1024 * 1024;
/** So many programs that want to run for each processor are too much for more. */
const LOAD_PER_PROCESSOR = 4;

export interface WarmOptions {
  /** How many there may be at most. */
  readonly max: number;
  /** How many sandboxes there may be on the server, these included. */
  readonly maxSandboxes: number;
  /** How many there are on the server that somebody has, of all backends, and those that are being made. Absent: gVisor's. */
  readonly sandboxes?: (() => number) | undefined;
  readonly clock: Clock;
  readonly onProblem: (message: string, error: unknown) => void;
  /** Absent: what this machine says. */
  readonly room?: () => Room;
}

export interface WarmSource {
  readonly defaults: WarmDefaults;
  /** How many sandboxes there are that somebody has. */
  readonly live: () => number;
  readonly starter: Pick<SandboxStarter, "freshAhead" | "stateAhead">;
}

/** Nobody has it yet. */
const NOBODY = "warm";

/** Sandboxes of gVisor that are started ahead of the need. No code of any client has run in them since. */
export class WarmSandboxes {
  readonly #source: WarmSource;
  readonly #pool: WarmPool<GvisorSandbox>;
  /** How many more sandboxes there may be than somebody has. */
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

  /** The fresh sandbox that is asked for, if one that was started ahead can be it. */
  async take(request: AcquireRequest, options: CallOptions): Promise<GvisorSandbox | undefined> {
    const { defaults, starter } = this.#source;
    const key = request.skipWarmPool === true ? undefined : warmKey(request, defaults);
    if (key === undefined) return undefined;
    const anybodys = withoutAsker(request);
    return this.#take({ key, make: (how) => starter.freshAhead(anybodys, how.signal, how.hurry) }, request, options);
  }

  /** The same for one with a saved state. Most states are asked for once, so the first request counts for nothing. */
  async takePrepared(
    request: AcquireRequest,
    state: PreparedState,
    options: CallOptions,
  ): Promise<GvisorSandbox | undefined> {
    const { defaults, starter } = this.#source;
    const key = request.skipWarmPool === true ? undefined : stateKey(request, state.id, defaults);
    // Of one that is too large none is ever made, so nobody waits for one.
    if (key === undefined || !isSmall(state.sizeBytes)) return undefined;
    const anybodys = withoutAsker(request);
    const recipe: Recipe<GvisorSandbox> = {
      key,
      uncounted: 1,
      make: (how) => starter.stateAhead(anybodys, state, how.signal, how.hurry),
    };
    return this.#take(recipe, request, options);
  }

  /** Before one is made that was not ready: what is ready gives up its place where there is no other, and has ended then. */
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

  #take(
    recipe: Recipe<GvisorSandbox>,
    request: AcquireRequest,
    options: CallOptions,
  ): Promise<GvisorSandbox | undefined> {
    return this.#pool.take(recipe, (sandbox) => sandbox.become(request, options), options);
  }
}

/** Nothing of who asks now is kept for who asks next. */
function withoutAsker({ spec: { image, resources } }: AcquireRequest): AcquireRequest {
  const spec = { ...(image === undefined ? {} : { image }), env: {}, resources, network: "none" as const };
  return { sandboxId: NOBODY, spec };
}

/** Whether this machine has something to spare for sandboxes that nobody has asked for yet. */
function machineRoom(): Room {
  const limit = process.constrainedMemory();
  const memoryBytes = limit > 0 ? Math.min(limit, totalmem()) : totalmem();
  if (process.availableMemory() < Math.max(FREE_BYTES, memoryBytes * FREE_SHARE)) return "short";
  return (loadavg()[0] ?? 0) > LOAD_PER_PROCESSOR * availableParallelism() ? "busy" : "free";
}
