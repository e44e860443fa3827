import { asSandboxerError, lossLimit, type LossLimit } from "@sandboxer/protocol";
import { CalledOff } from "../lifecycle/pause.ts";
import type { SavingContext } from "../room-contexts.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { checkpointSandbox } from "./checkpoint.ts";
import { wasCalledOff } from "./live-saves.ts";
import { isBroken, isDue, isEasy, restMs, urgency, type Pace } from "./promise.ts";
import { endRisk, raiseRisk } from "./risk.ts";

const LOOK_MS = 200;

/**
 * How many sandboxes are checkpointed at once for max_loss: more would compete for the same disk and the users' CPU.
 */
const AT_ONCE = 2;

interface Watch extends Pace {
  readonly failures: number;
  readonly notBeforeMs: number;
}

/**
 * Checkpoints sandboxes as often as their max_loss needs, and reports when it is not met. Returns a function that stops
 * it.
 */
export function keepPromises(context: SavingContext): () => void {
  const keeper = new PromiseKeeper(context);
  const timer = setInterval(() => keeper.look(), LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

class PromiseKeeper {
  readonly #context: SavingContext;
  readonly #watches = new WeakMap<LiveSandbox, Watch>();
  #saving = 0;

  constructor(context: SavingContext) {
    this.#context = context;
  }

  look(): void {
    const { draining, sandboxes, nowMs } = this.#context;
    if (draining) return;
    const promised = [...sandboxes.values()].flatMap((sandbox) => {
      if (sandbox.state !== "running" && sandbox.state !== "saving") return [];
      // For every sandbox from its start: a max_loss that is set later covers everything since.
      const watch = this.#watchOf(sandbox);
      const limit = this.#limitOf(sandbox);
      return limit === undefined ? [] : [{ sandbox, limit, watch, urgency: urgency(limit, sandbox.unsaved, nowMs) }];
    });
    const due = promised.filter(
      ({ sandbox, limit, watch }) => isDue(limit, sandbox.unsaved, nowMs, watch) && this.#canSave(sandbox),
    );
    for (const { sandbox, limit } of due.toSorted((left, right) => right.urgency - left.urgency)) {
      if (this.#saving < AT_ONCE) void this.#save(sandbox, limit);
    }
    // Last, when the reason for a delay is known.
    for (const { sandbox, limit } of promised) this.#judge(sandbox, limit);
  }

  /** Undefined: no max_loss. */
  #limitOf(sandbox: LiveSandbox): LossLimit | undefined {
    const { max_loss } = sandbox.facts.about;
    if (max_loss === null || !sandbox.durable) {
      endRisk(this.#context, sandbox);
      return undefined;
    }
    return lossLimit(max_loss);
  }

  #judge(sandbox: LiveSandbox, limit: LossLimit): void {
    const { nowMs } = this.#context;
    const { unsaved } = sandbox;
    if (isBroken(limit, unsaved, nowMs)) return raiseRisk(this.#context, sandbox, { late: this.#whyLate(sandbox) });
    const { atRisk: risk } = sandbox;
    if (risk === undefined || unsaved.publishedMs < risk.sinceMs || !isEasy(limit, unsaved, nowMs)) return;
    endRisk(this.#context, sandbox);
  }

  #canSave(sandbox: LiveSandbox): boolean {
    const { ownership } = this.#context.durable;
    if (sandbox.state !== "running" || sandbox.liveSaves.underWay || ownership.instances.frozen) return false;
    return !this.#isWanted(sandbox) && this.#watchOf(sandbox).notBeforeMs <= this.#context.nowMs;
  }

  /** Whether another server requested the sandbox and gets it: the handoff saves it. */
  #isWanted({ id }: LiveSandbox): boolean {
    const want = this.#context.durable.ownership.held(id)?.want;
    return want != null && want.refused === undefined;
  }

  #whyLate(sandbox: LiveSandbox): string {
    const { ownership } = this.#context.durable;
    if (ownership.instances.frozen)
      return `The server cannot reach its store: ${ownership.instances.frozenReason ?? "it does not answer."}`;
    if (sandbox.state === "saving") return "The sandbox is being paused, and that takes too long.";
    if (sandbox.liveSaves.underWay) return "The running checkpoint takes too long.";
    if (this.#isWanted(sandbox)) return "Another server has requested the sandbox, and the handoff takes too long.";
    if (this.#saving >= AT_ONCE) return "Other sandboxes of this server are saved first.";
    return "No checkpoint was taken in time.";
  }

  async #save(sandbox: LiveSandbox, limit: LossLimit): Promise<void> {
    const context = this.#context;
    const startedMs = context.nowMs;
    const lastCheck = (): void => {
      if (context.draining || this.#isWanted(sandbox)) throw new CalledOff();
    };
    this.#saving += 1;
    try {
      await checkpointSandbox(context, sandbox, { reason: "max_loss", lastCheck });
      const elapsedMs = context.nowMs - startedMs;
      this.#watches.set(sandbox, { failures: 0, notBeforeMs: 0, jitter: Math.random(), elapsedMs });
      this.#judge(sandbox, limit);
    } catch (thrown) {
      // Paused, replaced or ended meanwhile: that reports its own result.
      if (thrown instanceof CalledOff || sandbox.state !== "running") return;
      const error = asSandboxerError(thrown);
      if (wasCalledOff(error)) return;
      const { jitter, elapsedMs, failures } = this.#watchOf(sandbox);
      const notBeforeMs = context.nowMs + restMs(limit, failures + 1);
      this.#watches.set(sandbox, { failures: failures + 1, notBeforeMs, jitter, elapsedMs });
      raiseRisk(context, sandbox, { failure: error.message });
    } finally {
      this.#saving -= 1;
    }
  }

  #watchOf(sandbox: LiveSandbox): Watch {
    let watch = this.#watches.get(sandbox);
    if (watch === undefined) {
      watch = { failures: 0, notBeforeMs: 0, jitter: Math.random(), elapsedMs: 0 };
      this.#watches.set(sandbox, watch);
      sandbox.unsaved.noteStart(this.#context.nowMs);
    }
    return watch;
  }
}
