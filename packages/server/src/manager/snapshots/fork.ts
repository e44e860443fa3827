import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { BodyOf, RestoreRequestBody, Routes } from "@sandboxer/protocol";
import type { StoredSnapshot } from "../../checkpoints/snapshot-record.ts";
import type { ManagerContext } from "../context.ts";
import type { CreatedSandbox } from "../lifecycle/create.ts";
import { destroySandbox } from "../lifecycle/destroy.ts";
import { isPlaceProblem, isPreference } from "../ownership/affinity.ts";
import { checkShown, keysShown } from "../encryption.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { captureSnapshot } from "./capture.ts";
import { removeSnapshot } from "./remove-snapshot.ts";
import { restoreFrom, withinProfile } from "./restore-snapshot.ts";
import { forkSource } from "./source.ts";
import type { VerbOptions } from "../observing/operations/tracked.ts";

/** More at once would only compete for the disk. */
const RESTORES_AT_ONCE = 4;

/** A copy on another server: its record with its token, as that server answered. */
export interface CopyElsewhere {
  readonly record: Record<string, unknown>;
  readonly remove: () => Promise<void>;
}

/** Creates a copy on another server; undefined: none takes it. */
export type CopiesElsewhere = (snapshotId: string, body: RestoreRequestBody) => Promise<CopyElsewhere | undefined>;

export interface Forked {
  readonly snapshotId: string;
  readonly created: readonly (CreatedSandbox | CopyElsewhere)[];
}

/**
 * Captures a sandbox once and creates new ones from it; the sandbox keeps running. Copies that this server has no room
 * for, or that prefer others, are created elsewhere if the caller can do that. If one copy fails, all are undone.
 * The snapshot goes when none of them needs it any more, unless somebody has named, labelled or pinned it.
 */
export async function forkSandbox(
  context: ManagerContext,
  sandbox: LiveSandbox,
  { count, ...wanted }: BodyOf<Routes["forkSandbox"]>,
  given: VerbOptions = {},
  elsewhere?: CopiesElsewhere,
): Promise<Forked> {
  const options = { ...given, encryption: keysShown(sandbox, given.encryption) };
  // Before anything is captured for it.
  checkShown(sandbox.facts.about.encryption, options.encryption);
  const body = withinProfile(context, sandbox.facts.about.profile, wanted);
  const { snapshot } = await captureSnapshot(context, sandbox, { reason: "fork" }, options);
  const source = forkSource(context, snapshot);
  const restoreHere = (wish: RestoreRequestBody, mayPlace: boolean): Promise<CreatedSandbox> =>
    restoreFrom(context, snapshot, wish, { ...options, mayPlace }, { source });
  const restore = async (wish: RestoreRequestBody): Promise<CreatedSandbox | CopyElsewhere> => {
    try {
      return await restoreHere(wish, elsewhere !== undefined);
    } catch (error) {
      if (elsewhere === undefined || !isPlaceProblem(error)) throw error;
      const copy = await elsewhere(snapshot.id, wish);
      if (copy === undefined && !isPreference(error)) throw error;
      return copy ?? (await restoreHere(wish, false));
    }
  };
  const created: Forked["created"][number][] = [];
  const failures: SandboxerError[] = [];
  let started = 0;
  const restoreSome = async (): Promise<void> => {
    while (started < count && failures.length === 0) {
      started += 1;
      const number = started;
      try {
        created[number - 1] = await restore(named(body, number, count));
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
  created: Forked["created"],
  failure: SandboxerError,
  count: number,
): Promise<SandboxerError> {
  const end = (copy: CreatedSandbox | CopyElsewhere): Promise<unknown> =>
    "remove" in copy ? copy.remove() : destroySandbox(context, copy.sandbox);
  const ends = created.map((copy) => context.reported("end of an undone fork", end(copy)));
  await Promise.all(ends);
  await context.reported("removal of a fork's snapshot", removeSnapshot(context, snapshot.id));
  const what = `The fork failed and was undone: ${created.length} of ${count} sandboxes were created, then: `;
  return new SandboxerError(failure.code, what + failure.message, {
    cause: failure,
    hint: failure.hint,
    details: failure.details,
  });
}
