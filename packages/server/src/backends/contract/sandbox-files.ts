export interface FileEntry {
  readonly name: string;
  readonly kind: "file" | "folder" | "symlink" | "other";
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly sizeBytes: number;
  readonly modifiedMs: number;
  readonly linkTarget: string | undefined;
  /** Names with the same device and inode are one file with this many links; absent: unknown. */
  readonly device?: bigint;
  readonly inode?: bigint;
  readonly links?: number;
}

export interface FileRange {
  readonly offset?: number;
  readonly length?: number;
}

export type FileContent = Uint8Array | AsyncIterable<Uint8Array>;

export interface FileAttributes {
  readonly mode?: number;
  readonly modifiedNs?: bigint;
}

/** A change of a name in a watched folder. */
export interface FolderChange {
  /** A name that was moved here is created, one that was moved away is renamed. */
  readonly kind: "created" | "written" | "removed" | "renamed" | "attributes";
  readonly name: string;
  readonly isFolder: boolean;
}

export interface FolderWatcher {
  onChange(change: FolderChange): void;
  /** Nothing more comes: the folder was removed or moved, changes were lost because too many came, or the sandbox ended. */
  onEnd(why: "folder" | "lost" | "sandbox"): void;
}

export interface FolderWatch {
  close(): void;
}

/** Files inside, with the rights of the sandbox's user. Absolute paths. */
export interface SandboxFiles {
  stat(path: string): Promise<FileEntry>;
  list(path: string): Promise<readonly FileEntry[]>;
  read(path: string, options?: FileRange): AsyncIterable<Uint8Array>;
  /**
   * Replaces the content. Parent folders must exist. The mode applies when the file is created. With `holes`, the
   * backend may leave out zeros.
   */
  write(path: string, content: FileContent, options?: { mode?: number; holes?: boolean }): Promise<void>;
  makeFolder(path: string, options?: { readonly parents?: boolean }): Promise<void>;
  remove(path: string, options?: { readonly recursive?: boolean }): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** A link with that text, which need not lead anywhere. An existing name is an error. */
  makeSymlink(target: string, path: string): Promise<void>;
  /** A further name for an existing file. Absent, or `not_supported`: no hard links. */
  makeHardLink?(existing: string, path: string): Promise<void>;
  /** Does not follow a link; for a link, only the time can be set. */
  set(path: string, attributes: FileAttributes): Promise<void>;
  /**
   * Reports changes of names in a folder, not below it. A file is `bad_request`, an agent of an earlier release
   * `not_supported`. Absent: not supported.
   */
  watch?(path: string, watcher: FolderWatcher): Promise<FolderWatch>;
}

export interface RawFileAttributes extends FileAttributes {
  readonly owner?: { readonly uid: number; readonly gid: number };
}

/** Files with the rights of root. Each character of a name, a path or a link's target is one byte (latin1). */
export interface RawFiles extends SandboxFiles {
  /**
   * The user's extended attributes (`user.*`), whose names are bytes too. Absent, or `not_supported`: unknown;
   * `too_large`: more than can be returned.
   */
  attributes?(path: string): Promise<ReadonlyMap<string, Uint8Array>>;
  setAttribute?(path: string, name: string, value: Uint8Array): Promise<void>;
  /** Removing a missing one is fine. */
  removeAttribute?(path: string, name: string): Promise<void>;
  set(path: string, attributes: RawFileAttributes): Promise<void>;
}
