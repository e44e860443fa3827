import { posix } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import type { FolderChange, FolderWatch, FolderWatcher, SandboxFiles } from "../../backends/backend.ts";

/** Folders that one watch may have below it. */
const MAX_FOLDERS = 512;

/** A change in a watched folder; the name is relative to it. */
export type TreeChange = FolderChange;

export interface TreeWatcher {
  onChange(change: TreeChange): void;
  /** Nothing more comes. */
  onEnd(error: SandboxerError): void;
}

/** Reports changes in a folder and, if wanted, in all folders below it, until it is closed. */
export async function watchTree(
  files: SandboxFiles,
  folder: string,
  recursive: boolean,
  watcher: TreeWatcher,
): Promise<FolderWatch> {
  const tree = new TreeWatch(files, folder, recursive, watcher);
  try {
    await tree.open();
    return tree;
  } catch (error) {
    tree.close();
    throw error;
  }
}

class TreeWatch implements FolderWatch {
  readonly #files: SandboxFiles;
  readonly #root: string;
  readonly #recursive: boolean;
  readonly #watcher: TreeWatcher;
  /** By path below the root. */
  readonly #folders = new Map<string, FolderWatch>();
  /** The folders that are about to be watched. */
  readonly #opening = new Set<string>();
  #closed = false;

  constructor(files: SandboxFiles, root: string, recursive: boolean, watcher: TreeWatcher) {
    this.#files = files;
    this.#root = root;
    this.#recursive = recursive;
    this.#watcher = watcher;
  }

  async open(): Promise<void> {
    if (this.#files.watch === undefined) {
      throw new SandboxerError("not_supported", "The backend of this sandbox does not report changes of files.");
    }
    await this.#watch("");
    if (this.#recursive) await this.#enter("", undefined);
  }

  close(): void {
    this.#closed = true;
    for (const watch of this.#folders.values()) watch.close();
    this.#folders.clear();
  }

  async #watch(below: string, onName?: (name: string) => void): Promise<void> {
    if (this.#folders.size + this.#opening.size >= MAX_FOLDERS) throw tooMany();
    const own: FolderWatcher = {
      onChange: (change) => {
        onName?.(change.name);
        this.#onChange(below, change);
      },
      onEnd: (why) => {
        this.#folders.delete(below);
        if (why !== "folder" || below === "") this.#end(endOf(why));
      },
    };
    this.#opening.add(below);
    try {
      const watch = await this.#files.watch?.(posix.join(this.#root, below), own);
      if (this.#closed) watch?.close();
      else if (watch !== undefined) this.#folders.set(below, watch);
    } finally {
      this.#opening.delete(below);
    }
  }

  /** Watches the folders in a folder. `seen`: names that were reported since it is watched; others are reported here. */
  async #enter(below: string, seen: ReadonlySet<string> | undefined): Promise<void> {
    for (const { name, kind } of await this.#files.list(posix.join(this.#root, below))) {
      if (this.#closed) return;
      const path = posix.join(below, name);
      const isFolder = kind === "folder";
      // It was created before its folder was watched. Its own folders are then entered as those of a new one.
      if (seen !== undefined && !seen.has(name)) this.#onChange(below, { kind: "created", name, isFolder });
      else if (seen === undefined && isFolder) {
        await this.#watch(path);
        await this.#enter(path, undefined);
      }
    }
  }

  #onChange(below: string, change: FolderChange): void {
    if (this.#closed) return;
    const name = posix.join(below, change.name);
    this.#watcher.onChange({ ...change, name });
    if (!this.#recursive || !change.isFolder) return;
    if (change.kind === "created") void this.#enterNew(name);
    if (change.kind === "renamed") this.#leave(name);
  }

  async #enterNew(below: string): Promise<void> {
    // Its creation was reported when its folder was listed, and once more by its folder.
    if (this.#closed || this.#folders.has(below) || this.#opening.has(below)) return;
    const seen = new Set<string>();
    try {
      await this.#watch(below, (name) => seen.add(name));
      await this.#enter(below, seen);
    } catch (error) {
      // It may be deleted again, or belong to another user.
      if (error instanceof SandboxerError && error.code === "limit_reached") this.#end(error);
    }
  }

  /** Its folders have other paths now; if they are still below the root, they are reported as new. */
  #leave(name: string): void {
    for (const [path, watch] of this.#folders) {
      if (path !== name && !path.startsWith(`${name}/`)) continue;
      watch.close();
      this.#folders.delete(path);
    }
  }

  #end(error: SandboxerError): void {
    if (this.#closed) return;
    this.close();
    this.#watcher.onEnd(error);
  }
}

function endOf(why: "folder" | "lost" | "sandbox"): SandboxerError {
  if (why === "folder") return new SandboxerError("file_not_found", "The watched folder was deleted or moved.");
  if (why === "sandbox") return new SandboxerError("sandbox_failed", "The sandbox has ended or was paused.");
  return new SandboxerError("limit_reached", "Too many files changed at once, so some changes were lost.", {
    hint: "Watch the folder again, and list it to see its present files.",
  });
}

function tooMany(): SandboxerError {
  return new SandboxerError("limit_reached", `More than ${MAX_FOLDERS} folders are below the watched folder.`, {
    hint: "Watch a folder with fewer folders below it, or watch it without those below it.",
  });
}
