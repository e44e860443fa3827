import { type FileChange, SandboxerError, type SnapshotDiff } from "@sandboxer/protocol";
import type { KeyOptions } from "../../checkpoints/data-keys.ts";
import type { ManagerContext } from "../context.ts";
import { runningSandbox } from "../running.ts";
import { decodeFileList, type FileList, type ListedFile } from "./file-list.ts";
import { findSnapshot } from "./source.ts";
import { listFiles } from "./walk-files.ts";

const LIVE = "sandbox:";
const SECOND_MS = 1000;

/** The changes from one state to another: each is a snapshot, or a sandbox as it is now (`sandbox:ID`). */
export async function diffSnapshots(
  context: ManagerContext,
  from: string,
  to: string,
  limit: number,
  options: KeyOptions = {},
): Promise<SnapshotDiff> {
  const filesOf = (state: string): ReturnType<typeof savedFiles> =>
    state.startsWith(LIVE) ? liveFiles(context, state.slice(LIVE.length)) : savedFiles(context, state, options);
  const before = await filesOf(from);
  const after = await filesOf(to);
  const changes = compareFiles(before.list.files, after.list.files);
  const count = (change: FileChange["change"]): number => changes.filter((each) => each.change === change).length;
  return {
    from: before.id,
    to: after.id,
    added: count("added"),
    changed: count("changed"),
    removed: count("removed"),
    changes: changes.slice(0, limit),
    truncated: changes.length > limit || before.list.truncated || after.list.truncated,
  };
}

/** Sorted by path. */
export function compareFiles(
  before: ReadonlyMap<string, ListedFile>,
  after: ReadonlyMap<string, ListedFile>,
): readonly FileChange[] {
  const changes: FileChange[] = [];
  for (const [path, was] of before) {
    const is = after.get(path);
    if (is === undefined) changes.push(changeOf(path, "removed", was, undefined));
    else if (!isSame(was, is)) changes.push(changeOf(path, "changed", was, is));
  }
  for (const [path, is] of after) if (!before.has(path)) changes.push(changeOf(path, "added", undefined, is));
  return changes.toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

function changeOf(
  path: string,
  change: FileChange["change"],
  was: ListedFile | undefined,
  is: ListedFile | undefined,
): FileChange {
  const kind = (is ?? was)?.kind ?? "other";
  return { path, change, kind, size_before: was?.sizeBytes ?? null, size_after: is?.sizeBytes ?? null };
}

/** A folder changes with its contents, which have lines of their own. */
function isSame(was: ListedFile, is: ListedFile): boolean {
  if (was.kind !== is.kind || was.mode !== is.mode) return false;
  if (is.kind === "folder") return true;
  if (was.sizeBytes !== is.sizeBytes || was.linkTarget !== is.linkTarget) return false;
  return is.kind === "symlink" || isSameTime(was.modifiedMs, is.modifiedMs);
}

/** A snapshot of files keeps whole seconds. */
function isSameTime(a: number, b: number): boolean {
  if (a === b) return true;
  const whole = a % SECOND_MS === 0 || b % SECOND_MS === 0;
  return whole && Math.floor(a / SECOND_MS) === Math.floor(b / SECOND_MS);
}

async function savedFiles(
  context: ManagerContext,
  idOrName: string,
  options: KeyOptions,
): Promise<{ id: string; list: FileList }> {
  const { id, backend } = await findSnapshot(context, idOrName);
  const encoded = await context.snapshots.readFiles(id, options);
  if (encoded === undefined) throw withoutFiles(`The snapshot ${id}, of the backend ${backend},`);
  return { id, list: await decodeFileList(encoded) };
}

async function liveFiles(context: ManagerContext, sandboxId: string): Promise<{ id: string; list: FileList }> {
  const sandbox = await runningSandbox(context, sandboxId);
  const { backend } = sandbox.facts;
  if (!context.backend(backend).capabilities.files) throw withoutFiles(`The backend ${backend}`);
  return { id: LIVE + sandbox.id, list: await listFiles(sandbox.handle.files, context.options.clock) };
}

function withoutFiles(what: string): SandboxerError {
  return new SandboxerError("not_supported", `${what} has no file list to compare.`);
}
