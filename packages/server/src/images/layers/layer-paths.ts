import type { TarEntry } from "../../support/tar-header.ts";
import { LayerRefused } from "./layer-refused.ts";

const MAX_LINKS = 40;
const MAX_NAME_BYTES = 255;
/** The system's limit is 4096, including the folder of the layer. */
const MAX_PATH_BYTES = 3000;
const MAX_DEPTH = 256;

/** The names of one layer as they are unpacked, so that links are followed here and nothing leaves the folder. */
export class LayerPaths {
  /** Symbolic links and their targets. */
  readonly #links = new Map<string, string>();
  /** Folders: true if the layer describes them. */
  readonly #folders = new Map<string, boolean>();
  readonly #files = new Set<string>();

  /** Where an entry of this name goes: its parents are followed, its last part is not. Empty: the top folder. */
  place(name: string): string {
    return this.#resolve(name);
  }

  /** The target of a hard link, which must have been unpacked before. */
  existing(name: string): string {
    const path = this.#resolve(name);
    if (this.#files.has(path) || this.#links.has(path)) return path;
    throw new LayerRefused(`a hard link leads to ${JSON.stringify(path.slice(0, 200))}, which is not in its layer`);
  }

  /** Notes an entry that is unpacked. A later entry replaces an earlier one. */
  put(path: string, kind: TarEntry["kind"], target: string): void {
    this.#needFolders(path);
    const wasFolder = this.#folders.has(path);
    if (wasFolder && kind !== "folder") {
      throw new LayerRefused(`${JSON.stringify(path.slice(0, 200))} is a folder and something else`);
    }
    // tar creates links last, so that one cannot make room for something else.
    if (this.#links.has(path))
      throw new LayerRefused(`${JSON.stringify(path.slice(0, 200))} is a link and something else`);
    this.#files.delete(path);
    if (kind === "folder") this.#folders.set(path, true);
    else if (kind === "symlink") this.#links.set(path, target);
    else this.#files.add(path);
  }

  implicitFolders(): string[] {
    return [...this.#folders].filter(([, described]) => !described).map(([path]) => path);
  }

  #needFolders(path: string): void {
    for (let slash = path.indexOf("/"); slash !== -1; slash = path.indexOf("/", slash + 1)) {
      const folder = path.slice(0, slash);
      if (this.#files.has(folder)) {
        throw new LayerRefused(`${JSON.stringify(folder.slice(0, 200))} is a file and a folder`);
      }
      if (!this.#folders.has(folder)) this.#folders.set(folder, false);
    }
  }

  /** As inside a `chroot`: `..` at the top stays there. The last part is not followed. */
  #resolve(name: string): string {
    if (name.includes("\0")) throw new LayerRefused("it has a name with a NUL");
    if (name.length > MAX_PATH_BYTES) throw new LayerRefused("it has a path that is too long");
    const parts = name.split("/").toReversed();
    const resolved: string[] = [];
    let links = 0;
    let part: string | undefined;
    while ((part = parts.pop()) !== undefined) {
      if (part === "" || part === ".") continue;
      if (part === "..") {
        resolved.pop();
        continue;
      }
      if (part.length > MAX_NAME_BYTES) throw new LayerRefused("it has a name that is too long");
      resolved.push(part);
      if (resolved.length > MAX_DEPTH) throw new LayerRefused("it has a path that is too long");
      const isLast = parts.every((rest) => rest === "" || rest === ".");
      const target = isLast || this.#links.size === 0 ? undefined : this.#links.get(resolved.join("/"));
      if (target === undefined) continue;
      if (++links > MAX_LINKS) throw new LayerRefused("it has links that lead in circles");
      resolved.pop();
      if (target.startsWith("/")) resolved.length = 0;
      parts.push(...target.split("/").toReversed());
    }
    const path = resolved.join("/");
    if (path.length > MAX_PATH_BYTES) throw new LayerRefused("it has a path that is too long");
    return path;
  }
}
