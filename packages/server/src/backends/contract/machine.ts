/** What a machine must have to load a saved state. Absent parts: anything will do. */
export interface StateNeeds {
  /** The version of the engine that wrote it. */
  readonly engine?: string;
  readonly platform?: string;
  readonly architecture?: string;
  readonly cpuFeatures?: readonly string[];
}

/** What a machine offers to the saved states of a backend. Absent parts: unknown. Published, so in the form of JSON. */
export interface MachineFacts {
  /** Versions of engines that lie on the machine. */
  readonly engines?: readonly string[] | undefined;
  /** Whether it gets other engines when a state needs them. */
  readonly fetches_engines?: boolean | undefined;
  readonly platforms?: readonly string[] | undefined;
  readonly architecture?: string | undefined;
  readonly cpu_features?: readonly string[] | undefined;
}
