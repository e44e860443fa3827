export const FAULT_KINDS = [
  "crash",
  "pause",
  "partition",
  "outage",
  "wall-clock jump",
  "lost request",
  "lost reply",
  "delay",
  "duplicate",
  "store failure",
] as const;

export type FaultKind = (typeof FAULT_KINDS)[number];

export interface PlannedFault {
  readonly ordinal: number;
  readonly kind: FaultKind;
  readonly atMs: number;
  readonly what: string;
}

/** The faults of a seed that happen: all, or only some when a failure is shrunk. */
export class FaultPlan {
  readonly faults: PlannedFault[] = [];
  readonly #allowed: (ordinal: number) => boolean;
  #ordinal = 0;

  constructor(allowed: (ordinal: number) => boolean = () => true) {
    this.#allowed = allowed;
  }

  /** Whether the fault that is called for here happens. */
  allows(kind: FaultKind, atMs: number, what: () => string): boolean {
    const ordinal = this.#ordinal++;
    if (!this.#allowed(ordinal)) return false;
    this.faults.push({ ordinal, kind, atMs, what: what() });
    return true;
  }
}
