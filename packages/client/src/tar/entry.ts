/** One entry of a tar. Names use `/`; folders have no `/` at the end. */
export interface TarEntry {
  readonly name: string;
  readonly kind: "file" | "folder" | "symlink";
  /** The permission bits. */
  readonly mode: number;
  readonly modifiedAtMs: number;
  /** The size of the content that follows; 0 for folders and links. */
  readonly sizeBytes: number;
  readonly linkTarget?: string;
}

export const BLOCK_BYTES = 512;
