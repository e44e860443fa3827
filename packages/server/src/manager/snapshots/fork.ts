import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { BodyOf, RestoreRequestBody, Routes } from "@sandboxer/protocol";
import type { StoredSnapshot } from "../../checkpoints/snapshot-record.ts";
import type { ManagerContext } from "../context.ts";
import type { CreatedSandbox } from "../lifecycle/create.ts";
import { destroySandbox } from "../lifecycle/destroy.ts";
import { checkShown, keysShown } from "../encryption.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { captureSnapshot } from "./capture.ts";
import { removeSnapshot } from "./remove-snapshot.ts";
import { restoreFrom, withinProfile } from "./restore-snapshot.ts";
import { sourceOf } from "./source.ts";
import type { VerbOptions } from "../observing/operations/tracked.ts";

/** More at once would only compete for the disk. */
const RESTORES_AT_ONCE = 4;

export interface Forked {
  readonly snapshotId: string;
  readonly created: readonly CreatedSandbox[];
}

/**
 * Captures a sandbox once and creates new ones from it; the sandbox keeps running. If one copy fails, all are undone.
 * The snapshot goes when none of them needs it any more, unless somebody has named, labelled or pinned it.
 */
export async function forkSandbox(
  context: ManagerContext,
  sandbox: LiveSandbox,
  { count, ...wanted }: BodyOf<Routes["forkSandbox"]>,
  given: VerbOptions = {},
): Promise<Forked> {
  const options = { ...given, encryption: keysShown(sandbox, given.encryption) };
  // Before anything is captured for it.
  checkShown(sandbox.facts.about.encryption, options.encryption);
  const body = withinProfile(context, sandbox.facts.about.profile, wanted);
  const { snapshot } = await captureSnapshot(context, sandbox, { reason: "fork" }, options);
  const restored = sourceOf(context, snapshot);
  const source = { ...restored, lineage: { ...restored.lineage, fork: snapshot.id } };
  const created: CreatedSandbox[] = [];
  const failures: SandboxerError[] = [];
  let started = 0;
  const restoreSome = async (): Promise<void> => {
    while (started < count && failures.length === 0) {
      started += 1;
      const number = started;
      try {
        created[number - 1] = await restoreFrom(context, snapshot, named(body, number, count), options, { source });
        options.operation?.onProgress({ phase: `restored ${created.filter(Boolean).length} of ${count}` });
      } catch (error) {
        failures.push(asSandboxerError(error));
      }
    }
  };
  context.forking.add(snapshot.id);
  try {
    await Promise.all(Array.from({ length: Math.min(count, RESTORES_AT_ONCE) }, restoreSome));
    const [failure] = failures;
    if (failure !== undefined) throw await undo(context, snapshot, created.filter(Boolean), failure, count);
  } finally {
    context.forking.delete(snapshot.id);
  }
  options.operation?.concerns({ sandboxId: sandbox.id, snapshotId: snapshot.id });
  return { snapshotId: snapshot.id, created };
}

/** Several copies with one name get numbers. */
function named(body: RestoreRequestBody, number: number, count: number): RestoreRequestBody {
  return body.name === undefined || count === 1 ? body : { ...body, name: `${body.name}-${number}` };
}

async function undo(
  context: ManagerContext,
  snapshot: StoredSnapshot,
  created: readonly CreatedSandbox[],
  failure: SandboxerError,
  count: number,
): Promise<SandboxerError> {
  const ends = created.map((each) => context.reported("end of an undone fork", destroySandbox(context, each.sandbox)));
  await Promise.all(ends);
  await context.reported("removal of a fork's snapshot", removeSnapshot(context, snapshot.id));
  const what = `The fork failed and was undone: ${created.length} of ${count} sandboxes were created, then: `;
  return new SandboxerError(failure.code, what + failure.message, {
    cause: failure,
    hint: failure.hint,
    details: failure.details,
  });
}
