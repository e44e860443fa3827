/** Options of every call that may take long. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
}

export interface Progress {
  /** The current activity in a word or two: "saving memory", "packing". */
  readonly phase: string;
  readonly doneBytes?: number;
  readonly totalBytes?: number;
}
