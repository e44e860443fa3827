export interface ChaosRun {
  readonly backend: "fake" | "gvisor";
  readonly store: "directory" | "s3";
  /** Undefined: another one each time. */
  readonly seed: number | undefined;
  readonly seconds: number;
}

/** Two minutes for `npm test`: every backend and every store once. Together the first episodes of these seeds have every fault. */
export const USUAL_RUNS: readonly ChaosRun[] = [
  { backend: "fake", store: "s3", seed: 474, seconds: 60 },
  { backend: "gvisor", store: "directory", seed: 2184, seconds: 60 },
];

/** Every backend on every store, for `npm run test:long`. */
export const LONG_RUNS: readonly ChaosRun[] = (["fake", "gvisor"] as const).flatMap((backend) =>
  (["directory", "s3"] as const).map((store) => ({ backend, store, seed: undefined, seconds: 300 })),
);
