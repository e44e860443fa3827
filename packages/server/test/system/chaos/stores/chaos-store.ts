/** The faults of a store. `lost`: it carries out requests, and some answers never arrive. */
export type StoreFault = "down" | "slow" | "hang" | "lost" | "full" | "vanish";

export type StoreName = "directory" | "s3";

/** The store of a chaos run, and what can be done to it. */
export interface ChaosStore {
  /** Faults that cannot be injected on this machine, with the reason. */
  readonly impossible: ReadonlyMap<StoreFault, string>;
  addressFor(server: number): string;
  /** Lets the fault begin for these servers. `full` and `vanish` hit all. The answer ends it. */
  disturb(fault: StoreFault, servers: readonly number[], forMs: number): Promise<() => Promise<void>>;
  close(): Promise<void>;
}
