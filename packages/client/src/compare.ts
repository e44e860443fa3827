import type { ExecResult } from "./process/process.ts";
import type { Command, ExecOptions } from "./process/start.ts";
import type { ListeningPort, ProcessRecord, SandboxStats, SnapshotDiff } from "./records.ts";
import type { Sandbox } from "./sandbox.ts";
import { isSandboxerError } from "./wire/errors.ts";

export interface CompareOptions {
  /** Runs in each sandbox, at the same time. */
  readonly command?: Command | undefined;
  /** For the command. */
  readonly exec?: ExecOptions;
  /** How many changed files are listed for each sandbox. Default: 1000. */
  readonly limit?: number;
}

type FileChanges = Pick<SnapshotDiff, "added" | "changed" | "removed" | "changes" | "truncated">;

/** One of the compared sandboxes. A fact that could not be read is null, and `problems` has the reason. */
export interface ComparedSandbox {
  readonly id: string;
  readonly name: string | null;
  /** The files that changed since the base. */
  readonly files: FileChanges | null;
  /** The processes that run, before the command. */
  readonly processes: readonly ProcessRecord[] | null;
  readonly ports: readonly ListeningPort[] | null;
  readonly usage: SandboxStats | null;
  /** The result of the command; null also without a command. */
  readonly run: ExecResult | null;
  readonly problems: readonly string[];
}

export interface Comparison {
  /** The base of the comparison: the snapshot that all sandboxes come from, or the first sandbox. */
  readonly base: { readonly kind: "snapshot" | "sandbox"; readonly id: string };
  readonly items: readonly ComparedSandbox[];
}

const LIMIT = 1000;

/**
 * Compares sandboxes, usually forks of one another: changed files, running processes, ports, usage, and the result of a
 * command. Paused sandboxes are resumed. The files are listed before the command runs.
 */
export async function compareSandboxes(
  sandboxes: readonly Sandbox[],
  { command, exec = {}, limit = LIMIT }: CompareOptions = {},
): Promise<Comparison> {
  const base = await baseOf(sandboxes);
  const items = sandboxes.map(async (sandbox): Promise<ComparedSandbox> => {
    const problems: string[] = [];
    const read = <Fact>(what: string, work: () => PromiseLike<Fact>): Promise<Fact | null> =>
      factOf(problems, what, work);
    const [files, processes, ports, usage] = await Promise.all([
      read("files", () => filesOf(sandbox, base, limit)),
      read("processes", async () => (await sandbox.processes()).filter(({ state }) => state === "running")),
      read("ports", () => sandbox.ports()),
      read("usage", () => sandbox.stats()),
    ]);
    const run = command === undefined ? null : await read("command", () => sandbox.exec(command, exec));
    return { id: sandbox.id, name: sandbox.record.name, files, processes, ports, usage, run, problems };
  });
  return { base, items: await Promise.all(items) };
}

async function factOf<Fact>(problems: string[], what: string, work: () => PromiseLike<Fact>): Promise<Fact | null> {
  try {
    return await work();
  } catch (error) {
    if (!isSandboxerError(error)) throw error;
    problems.push(`${what}: ${error.message}`);
    return null;
  }
}

/** Every sandbox comes from this snapshot, or is the one that was captured; if there is none, the first sandbox. */
async function baseOf(sandboxes: readonly Sandbox[]): Promise<Comparison["base"]> {
  const [first] = sandboxes;
  const own: Comparison["base"] = { kind: "sandbox", id: first?.id ?? "" };
  const id = sandboxes.map(({ record }) => record.origin.snapshotId).find((each) => each !== null);
  if (first === undefined || id == null) return own;
  const parents = new Set(sandboxes.filter(({ record }) => record.origin.snapshotId !== id).map((each) => each.id));
  const { sandboxId, missing } = await first.client.snapshots.get(id).then(
    (snapshot) => ({ sandboxId: snapshot.sandboxId, missing: false }),
    () => ({ sandboxId: "", missing: true }),
  );
  parents.delete(sandboxId);
  return missing || parents.size > 0 ? own : { kind: "snapshot", id };
}

async function filesOf(sandbox: Sandbox, base: Comparison["base"], limit: number): Promise<FileChanges> {
  if (base.id === sandbox.id) return { added: 0, changed: 0, removed: 0, changes: [], truncated: false };
  const diff =
    base.kind === "snapshot"
      ? await sandbox.diff(base.id, { limit })
      : await sandbox.client.snapshots.diff(`sandbox:${base.id}`, sandbox, { limit });
  const { from: _from, to: _to, ...files } = diff;
  return files;
}
