import type { FileEntry } from "../../../backends/backend.ts";

interface Packed {
  /** In the archive. */
  readonly name: string;
  readonly facts: string;
  /** Names that are still to come. */
  left: number;
}

/** The files with several names of which one was packed, so that the others can refer to it. */
export class LinkedFiles {
  readonly #packed = new Map<string, Packed>();

  add(entry: FileEntry, name: string): void {
    const key = keyOf(entry);
    if (key !== undefined) this.#packed.set(key, { name, facts: factsOf(entry), left: (entry.links ?? 1) - 1 });
  }

  /** The name in the archive of the file that an entry is another name of. One that has changed since is a new file. */
  find(entry: FileEntry): string | undefined {
    const key = keyOf(entry);
    const packed = key === undefined ? undefined : this.#packed.get(key);
    if (key === undefined || packed === undefined || packed.facts !== factsOf(entry)) return undefined;
    packed.left -= 1;
    if (packed.left <= 0) this.#packed.delete(key);
    return packed.name;
  }
}

function keyOf({ device, inode, links = 1 }: FileEntry): string | undefined {
  return device === undefined || inode === undefined || links < 2 ? undefined : `${device}:${inode}`;
}

function factsOf({ sizeBytes, modifiedMs, mode, uid, gid }: FileEntry): string {
  return [sizeBytes, modifiedMs, mode, uid, gid].join(" ");
}
