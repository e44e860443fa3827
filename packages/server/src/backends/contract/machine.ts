/** The requirements of a saved state. Absent parts: none. */
export interface StateNeeds {
  /** The version of the engine that wrote it. */
  readonly engine?: string;
  readonly platform?: string;
  readonly architecture?: string;
  readonly cpuFeatures?: readonly string[];
}

/** The properties of a machine that saved states of a backend depend on. Absent parts: unknown. Published as JSON. */
export interface MachineFacts {
  /** Versions of engines that lie on the machine. */
  readonly engines?: readonly string[] | undefined;
  /** Whether it gets other engines when a state needs them. */
  readonly fetches_engines?: boolean | undefined;
  readonly platforms?: readonly string[] | undefined;
  readonly architecture?: string | undefined;
  readonly cpu_features?: readonly string[] | undefined;
}
