/** What every call that may take long accepts. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
}

export interface Progress {
  /** What is happening now, in a word or two: "saving memory", "packing". */
  readonly phase: string;
  readonly doneBytes?: number;
  readonly totalBytes?: number;
}
