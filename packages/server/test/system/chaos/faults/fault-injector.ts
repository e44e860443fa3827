import { setTimeout as delay } from "node:timers/promises";
import type { InjectedFault } from "../checker/history.ts";
import type { Violation } from "../checker/violation.ts";
import { machineMs } from "../machine-clock.ts";
import type { ServerSlot } from "../servers/server-slot.ts";
import type { ChaosStore, StoreFault } from "../stores/chaos-store.ts";
import type { Episode, PlannedFault } from "./plan.ts";

const RESTART_PAUSE_MS = 300;
/** Starts that may fail with the store at hand: another process may have the port for a moment. */
const FAILED_STARTS = 3;
/** How long an orderly stop may take once the store is there. */
const DRAIN_LIMIT_MS = 90_000;
/** More than once, and further apart than copies of one request. */
const GROUP_SIGNALS = 3;
const GROUP_PAUSE_MS = 300;
const STALL_SHARE = 0.75;

export interface InjectorOptions {
  readonly slots: readonly ServerSlot[];
  readonly store: ChaosStore;
  readonly leaseTtlMs: number;
  /** The drain timeout of servers: after it, a stop gives up unsaved sandboxes, and reports them. */
  readonly drainTimeoutMs: number;
  readonly onViolation: (violation: Violation) => void;
  readonly say: (line: string) => void;
}

/** Carries out a plan of faults, and writes down what it did. */
export class FaultInjector {
  /** Everything that was done so far, for those who judge. */
  readonly injected: InjectedFault[] = [];
  readonly #options: InjectorOptions;

  constructor(options: InjectorOptions) {
    this.#options = options;
  }

  /** Until the signal; then everything is put right again. */
  async run(episodes: Iterable<Episode>, signal: AbortSignal): Promise<void> {
    for (const { calmMs, faults } of episodes) {
      await pause(calmMs, signal);
      if (signal.aborted) return;
      await Promise.all(faults.map((fault) => this.#inject(fault, signal)));
    }
  }

  get isStoreDisturbed(): boolean {
    return this.injected.some(({ name, untilMs }) => untilMs === undefined && STORE_NAMES.has(name));
  }

  /** Whether a fault, but for this one, lasted then or was there since. */
  isDisturbedSince(sinceMs: number, but?: InjectedFault): boolean {
    return this.injected.some((fault) => fault !== but && (fault.untilMs === undefined || fault.untilMs > sinceMs));
  }

  /**
   * Whether a server did not get to run for a while since, on a machine with too much to do. What it owns it may have
   * kept, but whatever it had to do took longer.
   */
  isStarvedSince(sinceMs: number): boolean {
    return this.#options.slots.some((slot) => slot.stalls().some(({ untilMs }) => untilMs > sinceMs));
  }

  /** A server that did not get to run for so long may have lost what it owned, like one that was stopped. */
  noteStalls(): void {
    const known = new Set(this.injected.filter(({ name }) => name === "stall").map(({ fromMs }) => fromMs));
    for (const slot of this.#options.slots) {
      for (const { fromMs, untilMs } of slot.stalls()) {
        if (untilMs - fromMs < STALL_SHARE * this.#options.leaseTtlMs || known.has(fromMs)) continue;
        this.injected.push({ name: "stall", server: slot.index, fromMs, untilMs, lossy: true });
      }
    }
  }

  /** Starts a server until it runs: with its store away it may refuse to. */
  async revive(slot: ServerSlot): Promise<void> {
    for (let failures = 0; ;) {
      const disturbed = this.isStoreDisturbed;
      try {
        return await slot.start();
      } catch (error) {
        if (!disturbed && !this.isStoreDisturbed) failures += 1;
        if (failures === FAILED_STARTS) {
          const what = `Server ${slot.index} does not start: ${(error as Error).message}`;
          this.#options.onViolation({ rule: "stuck", what });
          throw error;
        }
        await delay(RESTART_PAUSE_MS);
      }
    }
  }

  /** A server that ended by itself is a defect, and is replaced. */
  async reviveCrashed(): Promise<void> {
    for (const slot of this.#options.slots.filter(({ hasCrashed }) => hasCrashed)) {
      const record = this.#begin("crash", slot.index, true);
      const code = await slot.ended();
      record.untilMs = machineMs();
      const what = `Server ${slot.index} ended by itself with ${code ?? "a signal"}:\n${slot.logTail()}`;
      this.#options.onViolation({ rule: "server crashed", what });
      await this.revive(slot);
    }
  }

  /** Tells a server to end, and judges how it did. */
  async stop(slot: ServerSlot, to: "server" | "group", name = "term"): Promise<void> {
    const fault = this.#begin(name, slot.index, "undecided");
    for (let sent = 0; sent < (name === "group" ? GROUP_SIGNALS : 1); sent++) {
      if (sent > 0) await delay(GROUP_PAUSE_MS);
      slot.signal("SIGTERM", to);
    }
    const code = await this.#drained(slot, fault);
    fault.untilMs = machineMs();
    fault.lossy = code !== 0;
    if (code === 0) return;
    const isExplained = this.injected.some(
      (other) => STORE_NAMES.has(other.name) && (other.untilMs ?? Infinity) >= fault.fromMs,
    );
    const isOutOfTime = fault.untilMs - fault.fromMs >= this.#options.drainTimeoutMs;
    // With the store away or out of time it may give up, as long as it says so.
    if ((isExplained || isOutOfTime) && code !== undefined) return;
    const how = code === undefined ? "was killed by a signal, or did not end" : `exited with ${code}`;
    const what = `Server ${slot.index}, told to stop (${name}), ${how}:\n${slot.logTail()}`;
    this.#options.onViolation({ rule: "unexpected answer", what });
  }

  async #drained(slot: ServerSlot, fault: InjectedFault): Promise<number | undefined> {
    while (slot.isStarted) {
      const code = await slot.ended(DRAIN_LIMIT_MS);
      if (!slot.isStarted) return code;
      if (!this.isDisturbedSince(machineMs() - DRAIN_LIMIT_MS, fault)) break;
    }
    await slot.kill();
    return undefined;
  }

  async #inject(fault: PlannedFault, signal: AbortSignal): Promise<void> {
    await pause(fault.afterMs, signal);
    if (signal.aborted) return;
    const { slots, leaseTtlMs } = this.#options;
    const slot = slots[fault.server];
    if (slot === undefined) throw new Error(`There is no server ${fault.server}.`);
    const to = fault.toGroup ? "group" : "server";
    this.#options.say(describe(fault));
    switch (fault.name) {
      case "kill": {
        const record = this.#begin("kill", slot.index, true);
        slot.signal("SIGKILL", to);
        await slot.kill();
        record.untilMs = machineMs();
        await pause(fault.forMs, signal);
        return await this.revive(slot);
      }
      case "term":
      case "group":
        await this.stop(slot, fault.name === "group" ? "group" : "server", fault.name);
        await pause(fault.forMs, signal);
        return await this.revive(slot);
      case "roll":
        for (const each of slots) {
          await this.stop(each, "server", "roll");
          await this.revive(each);
        }
        return;
      case "stop": {
        const record = this.#begin("stop", slot.index, true);
        slot.signal("SIGSTOP", to);
        await pause(fault.forMs, signal);
        slot.signal("SIGCONT", to);
        record.untilMs = machineMs();
        return;
      }
      case "clock": {
        const record = this.#begin("clock", slot.index, false);
        slot.control({ clockOffsetMs: fault.jumpMs });
        await pause(fault.forMs, signal);
        slot.control({ clockOffsetMs: 0 });
        record.untilMs = machineMs();
        return;
      }
      case "cut":
        return await this.#disturbStore("cut", "down", [slot.index], fault.forMs, signal);
      default:
        await this.#disturbStore(
          fault.name,
          fault.name,
          slots.map(({ index }) => index),
          Math.max(fault.forMs, 0.1 * leaseTtlMs),
          signal,
        );
    }
  }

  async #disturbStore(
    name: "cut" | StoreFault,
    fault: StoreFault,
    servers: readonly number[],
    forMs: number,
    signal: AbortSignal,
  ): Promise<void> {
    // With no room a server can look at the others' records and cannot renew its own. When the store is away for all,
    // nobody can look, and nobody may be declared dead.
    const lossy = name === "cut" || name === "full";
    const record = this.#begin(name, name === "cut" ? (servers[0] ?? 0) : "all", lossy);
    const heal = await this.#options.store.disturb(fault, servers, forMs);
    await pause(forMs, signal);
    await heal();
    record.untilMs = machineMs();
  }

  #begin(name: string, server: number | "all", lossy: InjectedFault["lossy"]): InjectedFault {
    const record: InjectedFault = { name, server, lossy, fromMs: machineMs(), untilMs: undefined };
    this.injected.push(record);
    return record;
  }
}

const STORE_NAMES: ReadonlySet<string> = new Set(["cut", "down", "slow", "hang", "lost", "full", "vanish"]);

function describe({ name, server, forMs, jumpMs, toGroup }: PlannedFault): string {
  const length = `${(forMs / 1000).toFixed(1)} s`;
  const hours = `${jumpMs / 3_600_000} h`;
  const scope = toGroup ? "its group" : "itself";
  if (name === "clock") return `clock: server ${server} by ${hours} for ${length}`;
  if (name === "kill" || name === "stop") return `${name}: server ${server}, ${scope}, ${length}`;
  return ["term", "group", "cut"].includes(name) ? `${name}: server ${server}, ${length}` : `${name}: ${length}`;
}

/** Shorter at the end of the run. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {});
}
