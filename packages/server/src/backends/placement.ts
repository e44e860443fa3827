import { SandboxerError, type SandboxRecord, type Strategy } from "@sandboxer/protocol";
import type { CostEstimate, Health } from "./backend.ts";

/** A backend that could run the sandbox, in the order of the profile. */
export interface PlacementCandidate {
  readonly name: string;
  readonly selfHosted: boolean;
  readonly health: Health;
  /** Absent: unknown. */
  readonly cost?: CostEstimate;
}

/** The choice and its reason. */
export type Placement = NonNullable<SandboxRecord["placement"]>;

interface Pick {
  readonly candidate: PlacementCandidate;
  readonly reason: string;
  readonly whyNot: (other: PlacementCandidate) => string;
}

/** Picks one of the candidates that can create sandboxes now. Pure: the caller has probed and estimated. */
export function choosePlacement(
  candidates: readonly PlacementCandidate[],
  strategy: Strategy,
  named?: string,
): Placement {
  if (named !== undefined && !candidates.some(({ name }) => name === named)) {
    const known = candidates.map(({ name }) => name).join(", ");
    throw new SandboxerError("bad_request", `There is no backend "${named}" to choose from.`, {
      hint: `Use ${known}.`,
    });
  }
  const wanted =
    strategy === "explicit" && named !== undefined ? candidates.filter(({ name }) => name === named) : candidates;
  const healthy = wanted.filter(({ health }) => health.ok);
  const [first] = healthy;
  if (first === undefined) throw noneLeft(wanted);
  const pick = PICKERS[strategy](healthy, first, named);
  return {
    backend: pick.candidate.name,
    strategy,
    reason: pick.reason,
    passed_over: candidates
      .filter((other) => other !== pick.candidate)
      .map((other) => ({ backend: other.name, reason: other.health.ok ? pick.whyNot(other) : unhealthy(other) })),
  };
}

type Picker = (healthy: readonly PlacementCandidate[], first: PlacementCandidate, named: string | undefined) => Pick;

/**
 * `explicit`: the requested one, otherwise the first. `prefer-self-hosted`: the first on a machine of ours, otherwise
 * the first. `lowest-cost`: the cheapest by estimate; those without a price come last.
 */
const PICKERS: Readonly<Record<Strategy, Picker>> = {
  explicit: (_, first, named) => ({
    candidate: first,
    reason: named === undefined ? "the first that is available" : "named in the request",
    whyNot: () => (named === undefined ? "listed later" : `the request names ${named}`),
  }),
  "prefer-self-hosted": (healthy, first) => {
    const own = healthy.find(({ selfHosted }) => selfHosted);
    if (own === undefined) {
      return {
        candidate: first,
        reason: "no self-hosted backend is available; the first of the others",
        whyNot: () => "listed later",
      };
    }
    const whyNot = (other: PlacementCandidate): string => (other.selfHosted ? "listed later" : "not self-hosted");
    return { candidate: own, reason: "the first self-hosted one that is available", whyNot };
  },
  "lowest-cost": (healthy, first) => {
    const currency = healthy.find(({ cost }) => cost !== undefined)?.cost?.currency;
    const priced = healthy.flatMap((candidate) =>
      candidate.cost?.currency === currency && candidate.cost !== undefined
        ? [{ candidate, cost: candidate.cost }]
        : [],
    );
    const [cheapest] = priced.toSorted((a, b) => a.cost.perHour - b.cost.perHour);
    const whyNot = ({ cost }: PlacementCandidate): string => {
      if (cost === undefined) return "has no price";
      if (cost.currency !== currency) return `costs ${priceText(cost)}, which is not compared with ${currency}`;
      return `costs ${priceText(cost)}${cost.perHour === cheapest?.cost.perHour ? ", and is listed later" : ""}`;
    };
    if (cheapest === undefined) return { candidate: first, reason: "no backend has a price; the first one", whyNot };
    return { candidate: cheapest.candidate, reason: `the cheapest at ${priceText(cheapest.cost)}`, whyNot };
  },
};

function priceText({ perHour, currency }: CostEstimate): string {
  return `${perHour} ${currency} per hour`;
}

function unhealthy({ health }: PlacementCandidate): string {
  return `not available: ${health.summary}`;
}

function noneLeft(candidates: readonly PlacementCandidate[]): SandboxerError {
  if (candidates.length === 0)
    return new SandboxerError("bad_request", "The profile lists no backend that this server has.");
  const why = candidates.map((candidate) => `${candidate.name} is ${unhealthy(candidate)}`).join("; ");
  const [remedy] = candidates.flatMap(({ health }) => (health.remedy === undefined ? [] : [health.remedy]));
  return new SandboxerError("backend_unavailable", `No backend can run the sandbox: ${why}`, {
    ...(remedy === undefined ? {} : { hint: remedy }),
    details: { passed_over: candidates.map(({ name, health }) => ({ backend: name, reason: health.summary })) },
  });
}
