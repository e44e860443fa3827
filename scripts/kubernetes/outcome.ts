export interface Step {
  readonly name: string;
  /** A sentence on the outcome. */
  readonly text: string;
  readonly seconds: number;
}

/** The results of a run. */
export interface Outcome {
  readonly steps: readonly Step[];
  /** Absent: everything went well. */
  readonly failure?: string;
}
