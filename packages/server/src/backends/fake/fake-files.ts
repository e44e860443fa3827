import type { FileEntry, FolderWatch, FolderWatcher, RawFiles } from "../backend.ts";
import { FileFault } from "./machine/file-fault.ts";
import type { TreeNode } from "./machine/file-node.ts";
import type { Machine } from "./machine/machine.ts";

const READ_BYTES = 256 << 10;

/** The files of a fake sandbox as its users see them. Root has no more rights, and owners do not change. */
export class FakeFiles implements RawFiles {
  readonly #machine: Machine;

  constructor(machine: Machine) {
    this.#machine = machine;
  }

  stat(path: string): Promise<FileEntry> {
    return this.#call(path, () =>
      entryOf(path.split("/").at(-1) ?? "", this.#machine.files.stat(path, { followLink: false })),
    );
  }

  list(path: string): Promise<readonly FileEntry[]> {
    return this.#call(path, () => [...this.#machine.files.list(path)].map(([name, node]) => entryOf(name, node)));
  }

  async *read(
    path: string,
    options: { readonly offset?: number; readonly length?: number } = {},
  ): AsyncIterable<Uint8Array> {
    const content = await this.#call(path, () => this.#machine.files.read(path));
    const from = options.offset ?? 0;
    const wanted = content.subarray(from, options.length === undefined ? undefined : from + options.length);
    for (let at = 0; at < wanted.length; at += READ_BYTES) yield new Uint8Array(wanted.subarray(at, at + READ_BYTES));
  }

  async write(
    path: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    options: { readonly mode?: number } = {},
  ): Promise<void> {
    const parts = content instanceof Uint8Array ? [content] : await Array.fromAsync(content);
    await this.#call(path, () => this.#machine.files.write(path, Buffer.concat(parts), options));
  }

  makeFolder(path: string, options: { readonly parents?: boolean } = {}): Promise<void> {
    return this.#call(path, () => this.#machine.files.makeFolder(path, options));
  }

  remove(path: string, options: { readonly recursive?: boolean } = {}): Promise<void> {
    return this.#call(path, () => this.#machine.files.remove(path, options));
  }

  rename(from: string, to: string): Promise<void> {
    return this.#call(from, () => this.#machine.files.rename(from, to));
  }

  makeSymlink(target: string, path: string): Promise<void> {
    return this.#call(path, () => this.#machine.files.makeLink(target, path));
  }

  set(path: string, attributes: { readonly mode?: number; readonly modifiedNs?: bigint }): Promise<void> {
    return this.#call(path, () => this.#machine.files.set(path, attributes));
  }

  watch(path: string, watcher: FolderWatcher): Promise<FolderWatch> {
    return this.#call(path, () => this.#machine.files.watch(path, watcher));
  }

  attributes(path: string): Promise<ReadonlyMap<string, Uint8Array>> {
    return this.#call(path, () => {
      const { attributes = {} } = this.#machine.files.stat(path, { followLink: false });
      return new Map(Object.entries(attributes).map(([name, value]) => [name, Buffer.from(value, "base64")]));
    });
  }

  setAttribute(path: string, name: string, value: Uint8Array): Promise<void> {
    return this.#call(path, () => {
      const node = this.#machine.files.stat(path, { followLink: false });
      node.attributes = { ...node.attributes, [name]: Buffer.from(value).toString("base64") };
    });
  }

  removeAttribute(path: string, name: string): Promise<void> {
    return this.#call(path, () => {
      const node = this.#machine.files.stat(path, { followLink: false });
      node.attributes = Object.fromEntries(Object.entries(node.attributes ?? {}).filter(([other]) => other !== name));
    });
  }

  async #call<Result>(path: string, action: () => Result): Promise<Result> {
    await this.#machine.scheduler.running();
    try {
      return action();
    } catch (thrown) {
      throw thrown instanceof FileFault ? thrown.toSandboxerError(path) : thrown;
    }
  }
}

function entryOf(name: string, node: TreeNode): FileEntry {
  const sizeBytes = node.kind === "file" ? node.content.length : node.kind === "symlink" ? node.target.length : 0;
  return {
    name,
    kind: node.kind,
    mode: node.mode,
    uid: node.uid,
    gid: node.uid,
    sizeBytes,
    modifiedMs: node.modifiedMs,
    linkTarget: node.kind === "symlink" ? node.target : undefined,
  };
}
