import { posix } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import type { FileEntry, RawFiles, SandboxFiles } from "../../backends/backend.ts";
import { refusedEntry } from "./confined-name.ts";

export interface FolderAttributes {
  readonly mode: number;
  readonly modifiedNs: bigint;
  /** Only for file systems that support owners. */
  readonly owner?: { readonly uid: number; readonly gid: number };
}

interface Step {
  readonly name: string;
  readonly path: string;
  attributes: FolderAttributes | undefined;
}

/**
 * The path from the root of a tree to the folder that is being unpacked. Every step was checked to be a folder and not
 * a link, so that nothing is written elsewhere. A folder gets its mode and time when it is left, because unpacking into
 * it changes them.
 */
export class FolderTrail {
  readonly #files: RawFiles;
  readonly #root: string;
  readonly #steps: Step[] = [];

  constructor(files: RawFiles, root: string) {
    this.#files = files;
    this.#root = root;
  }

  /** Enters a folder, which is created if missing, and returns its path. */
  async enter(parts: readonly string[], entryName: string, attributes?: FolderAttributes): Promise<string> {
    let common = 0;
    while (common < parts.length && this.#steps[common]?.name === parts[common]) common += 1;
    await this.leave(common);
    for (const name of parts.slice(common)) {
      const path = posix.join(this.#here, name);
      const found = await statOrNothing(this.#files, path);
      if (found === undefined) await this.#files.makeFolder(path);
      else if (found.kind !== "folder") throw refusedEntry(entryName, `leads through ${name}, which is not a folder`);
      this.#steps.push({ name, path, attributes: undefined });
    }
    const last = this.#steps.at(-1);
    if (attributes !== undefined && last !== undefined) last.attributes = attributes;
    return this.#here;
  }

  /** Leaves folders until the given number of steps remains. */
  async leave(depth = 0): Promise<void> {
    while (this.#steps.length > depth) {
      const step = this.#steps.pop();
      if (step?.attributes !== undefined) await this.#files.set(step.path, step.attributes);
    }
  }

  get #here(): string {
    return this.#steps.at(-1)?.path ?? this.#root;
  }
}

export async function statOrNothing(files: SandboxFiles, path: string): Promise<FileEntry | undefined> {
  return files.stat(path).catch((error: unknown) => {
    if (error instanceof SandboxerError && error.code === "file_not_found") return undefined;
    throw error;
  });
}
