import type { FolderChange, FolderWatch, FolderWatcher, Resources } from "../../backend.ts";
import { FileFault } from "./file-fault.ts";
import {
  captureNode,
  contentBytes,
  type FileNode,
  type FolderNode,
  mayRemove,
  mayWrite,
  type NodeState,
  restoreNode,
  type TreeNode,
  USER_ID,
} from "./file-node.ts";

const MAXIMUM_LINKS = 40;

interface Place {
  readonly parent: FolderNode;
  readonly name: string;
  readonly node: TreeNode | undefined;
}

/** The files of a machine. All calls act with the rights of the sandbox's user; paths are absolute. */
export class FileTree {
  readonly #root: FolderNode;
  readonly #resources: Resources;
  readonly #wallMs: () => number;
  readonly #watchers = new Map<FolderNode, Set<FolderWatcher>>();

  constructor(resources: Resources, wallMs: () => number, state?: NodeState) {
    this.#resources = resources;
    this.#wallMs = wallMs;
    const root = state === undefined ? undefined : restoreNode(state);
    this.#root = root?.kind === "folder" ? root : this.#freshRoot();
  }

  get usedBytes(): number {
    return contentBytes(this.#root);
  }

  capture(): NodeState {
    return captureNode(this.#root);
  }

  stat(path: string, options: { followLink?: boolean } = {}): TreeNode {
    const { node } = this.#find(path, options.followLink ?? true);
    if (node === undefined) throw new FileFault("ENOENT");
    return node;
  }

  list(path: string): ReadonlyMap<string, TreeNode> {
    const node = this.stat(path);
    if (node.kind !== "folder") throw new FileFault("ENOTDIR");
    return node.entries;
  }

  read(path: string): Buffer {
    const node = this.stat(path);
    if (node.kind !== "file") throw new FileFault("EISDIR");
    return node.content;
  }

  /** The mode applies to a file that is created here. */
  write(path: string, content: Uint8Array, options: { append?: boolean; mode?: number } = {}): void {
    const { parent, name, node } = this.#find(path, true);
    if (node !== undefined && node.kind !== "file") throw new FileFault("EISDIR");
    if (!mayWrite(node ?? parent)) throw new FileFault("EACCES");
    const before = node?.content ?? Buffer.alloc(0);
    const after = options.append === true ? Buffer.concat([before, content]) : Buffer.from(content);
    if (after.length > (this.#resources.fileBytes ?? Infinity)) throw new FileFault("EFBIG");
    const growth = after.length - before.length;
    const disk = this.#resources.diskBytes;
    if (disk !== undefined && growth > 0 && this.usedBytes + growth > disk) throw new FileFault("ENOSPC");
    const mode = (options.mode ?? 0o644) & 0o7777;
    const file: FileNode = node ?? { kind: "file", mode, uid: USER_ID, modifiedMs: 0, content: before };
    file.content = after;
    file.modifiedMs = this.#wallMs();
    parent.entries.set(name, file);
    if (node === undefined) this.#tell(parent, "created", name);
    this.#tell(parent, "written", name);
  }

  makeFolder(path: string, options: { parents?: boolean } = {}): void {
    if (options.parents === true) {
      const above = path.replace(/\/+[^/]+\/*$/, "");
      if (above !== "" && above !== path) this.makeFolder(above, options);
    }
    const { parent, name, node } = this.#find(path, true);
    if (node?.kind === "folder" && options.parents === true) return;
    if (node !== undefined) throw new FileFault("EEXIST");
    this.#put(parent, name, this.#folder(USER_ID, 0o755));
  }

  makeLink(target: string, path: string): void {
    const { parent, name, node } = this.#find(path, false);
    if (node !== undefined) throw new FileFault("EEXIST");
    this.#put(parent, name, { kind: "symlink", mode: 0o777, uid: USER_ID, modifiedMs: this.#wallMs(), target });
  }

  set(path: string, { mode, modifiedNs }: { readonly mode?: number; readonly modifiedNs?: bigint }): void {
    const { parent, name } = this.#find(path, false);
    const node = this.stat(path, { followLink: false });
    if (node.uid !== USER_ID) throw new FileFault("EPERM");
    if (mode !== undefined && node.kind === "symlink") throw new FileFault("EINVAL");
    if (mode !== undefined) node.mode = mode & 0o7777;
    if (modifiedNs !== undefined) node.modifiedMs = Number(modifiedNs / 1_000_000n);
    if (name !== ".") this.#tell(parent, "attributes", name);
  }

  remove(path: string, options: { recursive?: boolean } = {}): void {
    const { parent, name, node } = this.#find(path, false);
    if (node === undefined) throw new FileFault("ENOENT");
    if (!mayRemove(parent, node)) throw new FileFault("EACCES");
    if (node.kind === "folder" && node.entries.size > 0 && options.recursive !== true) throw new FileFault("ENOTEMPTY");
    parent.entries.delete(name);
    this.#tell(parent, "removed", name, node);
    this.#endWatches(node);
  }

  rename(from: string, to: string): void {
    const source = this.#find(from, false);
    const target = this.#find(to, false);
    if (source.node === undefined) throw new FileFault("ENOENT");
    if (!mayRemove(source.parent, source.node) || !mayWrite(target.parent)) throw new FileFault("EACCES");
    if (target.node === source.node) return;
    if (`${to}/`.startsWith(`${from}/`)) throw new FileFault("EINVAL");
    if (target.node?.kind === "folder" && source.node.kind !== "folder") throw new FileFault("EISDIR");
    if (target.node !== undefined && target.node.kind !== "folder" && source.node.kind === "folder") {
      throw new FileFault("ENOTDIR");
    }
    if (target.node?.kind === "folder" && target.node.entries.size > 0) throw new FileFault("ENOTEMPTY");
    source.parent.entries.delete(source.name);
    target.parent.entries.set(target.name, source.node);
    this.#tell(source.parent, "renamed", source.name, source.node);
    this.#tell(target.parent, "created", target.name);
    this.#endWatches(source.node);
  }

  watch(path: string, watcher: FolderWatcher): FolderWatch {
    const node = this.stat(path);
    if (node.kind !== "folder") throw new FileFault("ENOTDIR");
    const watchers = this.#watchers.get(node) ?? new Set();
    this.#watchers.set(node, watchers.add(watcher));
    return { close: () => void watchers.delete(watcher) };
  }

  /** The machine has ended. */
  endAllWatches(): void {
    for (const watchers of this.#watchers.values()) for (const watcher of watchers) watcher.onEnd("sandbox");
    this.#watchers.clear();
  }

  #tell(parent: FolderNode, kind: FolderChange["kind"], name: string, node = parent.entries.get(name)): void {
    const change = { kind, name, isFolder: node?.kind === "folder" };
    for (const watcher of this.#watchers.get(parent) ?? []) watcher.onChange(change);
  }

  #endWatches(node: TreeNode): void {
    if (node.kind !== "folder") return;
    for (const entry of node.entries.values()) this.#endWatches(entry);
    for (const watcher of this.#watchers.get(node) ?? []) watcher.onEnd("folder");
    this.#watchers.delete(node);
  }

  #put(parent: FolderNode, name: string, node: TreeNode): void {
    if (!mayWrite(parent)) throw new FileFault("EACCES");
    parent.entries.set(name, node);
    this.#tell(parent, "created", name);
  }

  /** Walks to the last part of the path, which need not exist. The root is its own parent. */
  #find(path: string, followLast: boolean, links = 0): Place {
    if (!path.startsWith("/") || path.includes("\0")) throw new FileFault("EINVAL");
    if (links > MAXIMUM_LINKS) throw new FileFault("ELOOP");
    const trail: FolderNode[] = [this.#root];
    const parts = path.split("/").filter((part) => part !== "" && part !== ".");
    for (const [index, name] of parts.entries()) {
      const parent = trail.at(-1) ?? this.#root;
      const last = index === parts.length - 1;
      const node = name === ".." ? (trail.at(-2) ?? this.#root) : parent.entries.get(name);
      if (node?.kind === "symlink" && (!last || followLast)) {
        const here = parts.slice(0, index).join("/");
        const target = node.target.startsWith("/") ? node.target : `/${here}/${node.target}`;
        return this.#find([target, ...parts.slice(index + 1)].join("/"), followLast, links + 1);
      }
      if (last && name !== "..") return { parent, name, node };
      if (node === undefined) throw new FileFault("ENOENT");
      if (node.kind !== "folder") throw new FileFault("ENOTDIR");
      if (name === "..") trail.splice(Math.max(1, trail.length - 1));
      else trail.push(node);
    }
    return { parent: trail.at(-2) ?? this.#root, name: ".", node: trail.at(-1) };
  }

  #folder(uid: number, mode: number): FolderNode {
    return { kind: "folder", mode, uid, modifiedMs: this.#wallMs(), entries: new Map() };
  }

  #freshRoot(): FolderNode {
    const root = this.#folder(0, 0o1777);
    for (const name of ["bin", "dev", "etc", "usr"]) root.entries.set(name, this.#folder(0, 0o755));
    root.entries.set("tmp", this.#folder(0, 0o1777));
    root.entries.set("workspace", this.#folder(USER_ID, 0o755));
    return root;
  }
}
