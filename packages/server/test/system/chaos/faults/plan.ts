import type { Random } from "../../../lease/simulation/random.ts";
import type { FaultName } from "./fault-names.ts";

/** One fault of the plan. The meaning of a field depends on the fault. */
export interface PlannedFault {
  readonly name: PlannedName;
  /** The affected server, if the fault affects one. */
  readonly server: number;
  /** After the beginning of its episode. */
  readonly afterMs: number;
  /** How long it lasts; for `kill`, `term` and `group`, how long nobody takes the server's place. */
  readonly forMs: number;
  /** How far the wall clock jumps. */
  readonly jumpMs: number;
  /** Whether a signal reaches all that was started with the server. */
  readonly toGroup: boolean;
}

/** Some calm, then one fault, or two that overlap. */
export interface Episode {
  readonly calmMs: number;
  readonly faults: readonly PlannedFault[];
}

/** `abort` is what clients do all the time, and `drain` two others at once. */
type PlannedName = Exclude<FaultName, "abort" | "drain">;

export interface PlanOptions {
  readonly faults: readonly FaultName[];
  readonly servers: number;
  readonly leaseTtlMs: number;
}

const ORDERLY_STOPS: readonly PlannedName[] = ["term", "group", "roll"];
const SERVER_FAULTS: readonly PlannedName[] = ["kill", "stop", ...ORDERLY_STOPS];
const STORE_FAULTS: readonly PlannedName[] = ["cut", "down", "slow", "hang", "lost", "full", "vanish"];
const TWO_AT_ONCE = 0.5;
const HOUR_MS = 3_600_000;
const JUMPS_MS = [-400 * 24, -24, -1, 1, 24, 400 * 24].map((hours) => hours * HOUR_MS);

/** The episodes that follow from a seed and from what is switched on, without an end: each fault once, then all again. */
export function* planEpisodes(random: Random, options: PlanOptions): Generator<Episode, never> {
  const enabled = options.faults.filter((name) => name !== "abort" && name !== "drain");
  const mayMeet = (one: PlannedName, other: PlannedName): boolean =>
    classOf(one) !== classOf(other) && (options.faults.includes("drain") || !isDrain(one, other));
  let left: PlannedName[] = [];
  for (;;) {
    const calmMs = random.between(0.2, 0.8) * options.leaseTtlMs;
    if (enabled.length === 0) {
      yield { calmMs, faults: [] };
      continue;
    }
    if (left.length === 0) left = [...enabled];
    const first = random.pick(left);
    left = left.filter((name) => name !== first);
    const others = enabled.filter((name) => mayMeet(first, name));
    const isDouble = random.chance(TWO_AT_ONCE) && others.length > 0;
    const names = isDouble ? [first, random.pick(others)] : [first];
    yield { calmMs, faults: names.map((name, index) => plan(name, index, random, options)) };
  }
}

function isDrain(one: PlannedName, other: PlannedName): boolean {
  const names = [one, other];
  return names.some((name) => ORDERLY_STOPS.includes(name)) && names.some((name) => STORE_FAULTS.includes(name));
}

function classOf(name: PlannedName): string {
  return SERVER_FAULTS.includes(name) ? "server" : STORE_FAULTS.includes(name) ? "store" : "clock";
}

function plan(name: PlannedName, index: number, random: Random, { servers, leaseTtlMs }: PlanOptions): PlannedFault {
  return {
    name,
    server: Math.floor(random.between(0, servers)),
    afterMs: index * random.between(0, 1.2) * leaseTtlMs,
    forMs: lengthOf(name, random) * leaseTtlMs,
    jumpMs: random.pick(JUMPS_MS),
    toGroup: random.chance(0.5),
  };
}

/** In lease times: a record that does not change for 1.5 of them is declared dead. */
function lengthOf(name: PlannedName, random: Random): number {
  switch (name) {
    case "kill":
    case "term":
    case "group":
      return random.chance(0.5) ? 0.05 : random.between(1, 2.2);
    case "roll":
      return 0.05;
    case "stop":
    case "cut":
      return random.between(1.7, 2.6);
    // Short enough that nobody freezes, or long enough that everybody does.
    case "down":
    case "vanish":
      return random.chance(0.3) ? 0.2 : random.between(2, 3);
    case "hang":
      return random.chance(0.2) ? random.between(5, 6) : random.between(0.2, 3);
    case "slow":
    case "lost":
    case "full":
    case "clock":
      return random.between(1, 2.5);
  }
}
