import type { Bug } from "./bugs.ts";
import { FaultPlan, type PlannedFault } from "./fault-plan.ts";
import { type Tally, Violation } from "./ledger.ts";
import { SimulatedManager } from "./simulated-manager.ts";
import { TTL_MS, World } from "./world.ts";

export interface ScheduleResult {
  readonly seed: number;
  readonly events: number;
  readonly tally: Tally;
  readonly faults: readonly PlannedFault[];
  /** The violated promise, if any. */
  readonly violation: { readonly message: string; readonly atMs: number } | undefined;
}

export const EVENTS_AT_LEAST = 3_000;
const FAULTY_MS = 5 * TTL_MS;
/** By then every death is known by every clock, and everything late has arrived. */
const SETTLING_MS = 4 * TTL_MS;
const CALM_MS = 5 * TTL_MS;
const EVENTS_AT_MOST = 60_000;

/** One random schedule: a time of faults, then a time in which everything must work again. The seed decides it all. */
export function runSchedule(seed: number, bug?: Bug, plan: FaultPlan = new FaultPlan()): ScheduleResult {
  const world = new World(seed, plan, bug);
  const { timeline, ledger } = world;
  try {
    run(world);
    return { seed, events: timeline.events, tally: ledger.tally, faults: plan.faults, violation: undefined };
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    const violation = { message: error.message, atMs: timeline.nowMs };
    return { seed, events: timeline.events, tally: ledger.tally, faults: plan.faults, violation };
  }
}

function run(world: World): void {
  const { timeline, ledger } = world;
  const managers = ["a", "b", "c", "d"].slice(0, world.chaos.chance(0.5) ? 3 : 4).map((name) => {
    return new SimulatedManager(world, name);
  });
  connect(world, managers);
  for (const manager of managers) begin(world, manager);
  befall(world, managers);
  do timeline.runUntil(timeline.nowMs + FAULTY_MS, EVENTS_AT_MOST);
  while (timeline.events < EVENTS_AT_LEAST);
  world.faulty = false;
  for (const { instance } of managers) instance.cutOffUntilMs = 0;
  timeline.runUntil(timeline.nowMs + SETTLING_MS, Number.POSITIVE_INFINITY);
  world.calmSinceMs = timeline.nowMs;
  const before = new Map(world.sandboxIds.map((id) => [id, ledger.signsOf(id)]));
  timeline.runUntil(timeline.nowMs + CALM_MS, Number.POSITIVE_INFINITY);
  for (const manager of managers) manager.checkNothingHangs();
  for (const [id, signs] of before) {
    if (!ledger.isDeleted(id) && ledger.signsOf(id) === signs) throw new Violation(`nothing became of ${id}`);
  }
}

function connect(world: World, managers: readonly SimulatedManager[]): void {
  world.ring = (instanceId, sandboxId) => {
    // A bell is an optimisation: half of the time nobody hears it.
    if (world.weather.chance(0.5)) return;
    managers.find(({ instance }) => instance.instanceId === instanceId)?.instance.ring(sandboxId);
    // Anyone may ring: a waiting server looks again, others do nothing.
    if (world.weather.chance(0.3)) for (const { instance } of managers) instance.ring(sandboxId);
  };
  world.provider.onStopped = (sandboxId) => {
    for (const manager of managers) manager.onEnded(sandboxId);
  };
  world.checkAlone = (sandboxId, runner) => {
    for (const manager of managers) {
      if (manager === runner || !manager.runs(sandboxId)) continue;
      const mine = (runner as SimulatedManager).instance;
      if (!mine.frozen) throw new Violation(`${sandboxId} runs at ${manager.instance.name} and at ${mine.name}`);
    }
  };
}

/** Clients come and go at their own pace, as long as the machine lives. */
function begin(world: World, manager: SimulatedManager): void {
  const round = (): void => {
    world.timeline.after(world.workload.between(60, 240), round);
    if (world.timeline.nowMs >= manager.instance.stoppedUntilMs) manager.act();
  };
  manager.instance.start();
  round();
}

/** Faults of machines and of the whole store. */
function befall(world: World, managers: readonly SimulatedManager[]): void {
  const { chaos, timeline, plan } = world;
  const { instance } = chaos.pick(managers);
  const dice = chaos.next();
  const ms = chaos.next() * 3 * TTL_MS;
  const gapMs = chaos.between(100, TTL_MS / 1.5);
  const untilMs = timeline.nowMs + ms;
  const happens = (kind: Parameters<FaultPlan["allows"]>[0]): boolean =>
    plan.allows(kind, timeline.nowMs, () => `${instance.name} for ${Math.round(ms)} ms`);
  if (dice < 0.3) {
    if (happens("pause")) instance.stoppedUntilMs = Math.max(instance.stoppedUntilMs, untilMs);
  } else if (dice < 0.55) {
    if (happens("partition")) instance.cutOffUntilMs = Math.max(instance.cutOffUntilMs, untilMs);
  } else if (dice < 0.7) {
    if (happens("crash")) instance.crash(ms / 4);
  } else if (dice < 0.85) {
    if (happens("wall-clock jump")) instance.jump((ms - 1.5 * TTL_MS) * 10);
  } else if (dice < 0.9 && happens("outage")) {
    for (const each of managers) each.instance.cutOffUntilMs = Math.max(each.instance.cutOffUntilMs, untilMs);
  }
  timeline.after(gapMs, () => {
    if (world.faulty) befall(world, managers);
  });
}
