/**
 * What a backend saved, as this layer sees it: files in a folder of this machine, with a kind and the requirements that
 * the backend compares before it loads them. Their meaning is the backend's own.
 */
export interface SavedState<Kind extends string = string> {
  readonly kind: Kind;
  readonly members: readonly SavedMember[];
  /** JSON. */
  readonly requirements: Readonly<Record<string, unknown>>;
}

export interface SavedMember {
  readonly name: string;
  readonly path: string;
  readonly sizeBytes: number;
}
