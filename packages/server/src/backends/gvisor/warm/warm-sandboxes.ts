import type { CallOptions } from "../../../support/call-options.ts";
import type { Clock } from "../../../support/clock.ts";
import type { AcquireRequest, WarmFigures } from "../../backend.ts";
import type { GvisorSandbox } from "../gvisor-sandbox.ts";
import { machineRoom } from "./machine-room.ts";
import type { Recipe } from "./shelf.ts";
import { warmKey, type WarmDefaults } from "./warm-key.ts";
import { WarmPool, type Room } from "./warm-pool.ts";

export interface WarmOptions {
  /** How many there may be at most. */
  readonly max: number;
  /** How many sandboxes there may be on the server, these included. */
  readonly maxSandboxes: number;
  readonly clock: Clock;
  readonly onProblem: (message: string, error: unknown) => void;
  /** Absent: what this machine says. */
  readonly room?: () => Room;
}

export interface WarmSource {
  readonly defaults: WarmDefaults;
  /** How many sandboxes there are that somebody has. */
  readonly live: () => number;
  /** Starts one as this request wants it. */
  readonly start: (
    request: AcquireRequest,
    how: Parameters<Recipe<GvisorSandbox>["make"]>[0],
  ) => Promise<GvisorSandbox>;
}

/** Nobody has it yet. */
const NOBODY = "warm";

/** Sandboxes of gVisor that are started ahead of the need. No code of any client has run in them. */
export class WarmSandboxes {
  readonly #source: WarmSource;
  readonly #pool: WarmPool<GvisorSandbox>;

  constructor(options: WarmOptions, source: WarmSource) {
    this.#source = source;
    const { maxSandboxes, room = machineRoom } = options;
    this.#pool = new WarmPool({
      ...options,
      room: () => {
        if (source.live() >= maxSandboxes) return "short";
        return source.live() + this.#pool.stock >= maxSandboxes ? "busy" : room();
      },
    });
  }

  get figures(): WarmFigures {
    return this.#pool.figures;
  }

  /** The sandbox that is asked for, if one that was started ahead can be it. */
  async take(request: AcquireRequest, options: CallOptions): Promise<GvisorSandbox | undefined> {
    const key = warmKey(request, this.#source.defaults);
    if (key === undefined) return undefined;
    const { image, resources } = request.spec;
    // Nothing of who asks now is kept for who asks next.
    const spec = { ...(image === undefined ? {} : { image }), env: {}, resources, network: "none" as const };
    const recipe: Recipe<GvisorSandbox> = {
      key,
      make: (how) => this.#source.start({ sandboxId: NOBODY, spec }, how),
    };
    return this.#pool.take(recipe, (sandbox) => sandbox.become(request, options));
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}
