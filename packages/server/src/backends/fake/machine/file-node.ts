export const USER_ID = 1000;

interface NodeBase {
  mode: number;
  readonly uid: number;
  modifiedMs: number;
  /** Extended attributes, in base64; absent: none. */
  attributes?: Readonly<Record<string, string>>;
}
export interface FileNode extends NodeBase {
  readonly kind: "file";
  content: Buffer;
}
export interface FolderNode extends NodeBase {
  readonly kind: "folder";
  readonly entries: Map<string, TreeNode>;
}
export interface LinkNode extends NodeBase {
  readonly kind: "symlink";
  readonly target: string;
}
export type TreeNode = FileNode | FolderNode | LinkNode;

/** A node as JSON: content in base64, entries as pairs. */
export interface NodeState extends NodeBase {
  readonly kind: TreeNode["kind"];
  readonly content?: string;
  readonly entries?: readonly (readonly [string, NodeState])[];
  readonly target?: string;
}

export function captureNode(node: TreeNode): NodeState {
  if (node.kind === "file") return { ...node, content: node.content.toString("base64") };
  if (node.kind === "symlink") return { ...node };
  return { ...node, entries: [...node.entries].map(([name, entry]) => [name, captureNode(entry)] as const) };
}

export function restoreNode(state: NodeState): TreeNode {
  const { mode, uid, modifiedMs, attributes } = state;
  const base = { mode, uid, modifiedMs, ...(attributes === undefined ? {} : { attributes }) };
  if (state.kind === "file") return { ...base, kind: "file", content: Buffer.from(state.content ?? "", "base64") };
  if (state.kind === "symlink") return { ...base, kind: "symlink", target: state.target ?? "" };
  const entries = (state.entries ?? []).map(([name, entry]) => [name, restoreNode(entry)] as const);
  return { ...base, kind: "folder", entries: new Map(entries) };
}

/** The content size of the node and everything below it. */
export function contentBytes(node: TreeNode): number {
  if (node.kind === "file") return node.content.length;
  if (node.kind === "symlink") return 0;
  return [...node.entries.values()].reduce((sum, entry) => sum + contentBytes(entry), 0);
}

/** The rights of the sandbox's user. */
export function mayWrite(node: TreeNode): boolean {
  return node.uid === USER_ID ? (node.mode & 0o200) !== 0 : (node.mode & 0o002) !== 0;
}

/** In a folder that everyone may write to, only the owner may remove an entry. */
export function mayRemove(parent: FolderNode, node: TreeNode): boolean {
  return mayWrite(parent) && ((parent.mode & 0o1000) === 0 || node.uid === USER_ID);
}
