import { MOST_ENDED, type Promotion, type ResponseOf, type Routes, SandboxerError } from "@sandboxer/protocol";
import type { StoredSnapshot } from "../../checkpoints/snapshot-record.ts";
import type { ManagerContext } from "../context.ts";
import { checkRewindTo, checkShown, keysShown } from "../encryption.ts";
import { resumeSandbox } from "../lifecycle/resume.ts";
import type { LiveSandbox, SandboxFacts } from "../live-sandbox.ts";
import { describeLive } from "../observing/describe.ts";
import { tracked, type VerbOptions } from "../observing/operations/tracked.ts";
import { notFound } from "../not-found.ts";
import { checkEpoch, runningSandbox } from "../running.ts";
import { captureSnapshot } from "./capture.ts";
import { endReplaced, type Ended } from "./end-replaced.ts";
import { checkLoadable } from "./portable/loadable.ts";
import { otherForks, relationOf } from "./promotable.ts";
import { removeSnapshot } from "./remove-snapshot.ts";
import { checkReplaceable, replaceState } from "./replace-state.ts";
import { sandboxToCapture } from "./sandbox-to-capture.ts";
import { labelOf } from "./source.ts";

export interface PromoteRequest {
  /** The sandbox that gets the state. */
  readonly sandboxId: string;
  /** The fork that gives its state. */
  readonly winner: string;
  readonly discardOthers: boolean;
  readonly epoch: number | undefined;
}

/** The capture of the state that a promotion replaces. */
const FORMER = { reason: "promote" } as const;

type Promoted = ResponseOf<Routes["promoteSandbox"]>;

/**
 * Gives a sandbox the state of one of its forks, with its files, memory and processes, and deletes the fork. The sandbox
 * keeps its id, name, key, token, labels, network policy and ports. Both states are saved as snapshots first; then one
 * swap of the sandbox's head is the promotion. Whatever a crash leaves undone after the swap, the next owner finishes.
 */
export async function promoteSandbox(
  context: ManagerContext,
  request: PromoteRequest,
  options: VerbOptions = {},
): Promise<Promoted> {
  const { sandboxId, winner: winnerId, epoch } = request;
  if (sandboxId === winnerId) throw new SandboxerError("bad_request", "A sandbox cannot be promoted into itself.");
  const involved = [sandboxId, winnerId];
  const busy = involved.find((id) => context.promoting.has(id));
  if (busy !== undefined) throw alreadyPromoting(busy);
  for (const id of involved) context.promoting.add(id);
  try {
    const { isDone, ancestors } = await relationOf(context, winnerId, sandboxId);
    if (isDone) return await finishEarlier(context, request, options);
    const others = request.discardOthers ? await otherForks(context, winnerId, ancestors) : [];
    if (others.length >= MOST_ENDED) throw tooMany(others.length);
    const original = await sandboxToCapture(context, sandboxId, epoch, FORMER, options);
    const winner = await winnerHere(context, winnerId, options);
    checkMatch(context, original, winner);
    const promotion = await promote(context, { original, winner, others }, withKeys(winner, options));
    const ended = await endReplaced(context, sandboxId);
    return answer(context, original, promotion, ended);
  } finally {
    for (const id of involved) context.promoting.delete(id);
  }
}

/** The promotion of this winner was committed before: only what is left of it is done. */
async function finishEarlier(
  context: ManagerContext,
  { sandboxId, epoch }: PromoteRequest,
  options: VerbOptions,
): Promise<Promoted> {
  const original = await resumeSandbox(context, { sandboxId, epoch, onlyIfFree: true }, options);
  const promotion = context.durable.ownership.held(sandboxId)?.promotion;
  if (promotion == null) throw notFound(sandboxId);
  return answer(context, original, promotion, await endReplaced(context, sandboxId));
}

/** A winner that is paused is resumed here; a server that runs it is asked to hand it off. */
async function winnerHere(context: ManagerContext, winnerId: string, options: VerbOptions): Promise<LiveSandbox> {
  if (context.sandboxes.get(winnerId)?.state === "running") return runningSandbox(context, winnerId);
  const { operation, ...rest } = options;
  operation?.onProgress({ phase: "resuming the winner" });
  const winner = await resumeSandbox(context, { sandboxId: winnerId }, rest);
  operation?.lap("winner");
  return winner;
}

function checkMatch(context: ManagerContext, original: LiveSandbox, winner: LiveSandbox): void {
  checkReplaceable(context, original);
  const [here, there] = [original.facts.backend, winner.facts.backend];
  if (here === there) return;
  throw new SandboxerError("not_supported", `The winner runs on the backend ${there}, and the original on ${here}.`, {
    hint: `Move the winner first: \`sandboxer move ${winner.id} --backend ${here}\`.`,
  });
}

function withKeys(winner: LiveSandbox, options: VerbOptions): VerbOptions {
  const encryption = keysShown(winner, options.encryption);
  checkShown(winner.facts.about.encryption, encryption);
  return { ...options, encryption };
}

interface Contest {
  readonly original: LiveSandbox;
  readonly winner: LiveSandbox;
  readonly others: Promotion["ends"];
}

async function promote(
  context: ManagerContext,
  { original, winner, others }: Contest,
  options: VerbOptions,
): Promise<Promotion> {
  options.operation?.onProgress({ phase: "saving the winner" });
  // Like the snapshot of a fork: it goes when no sandbox needs it.
  const { snapshot } = await captureSnapshot(context, winner, { reason: "fork" }, options);
  try {
    checkLoadable(context, context.backend(original.facts.backend), labelOf(snapshot));
    await checkRewindTo(context, original, snapshot);
    options.operation?.onProgress({ phase: "saving the former state" });
    const { snapshot: former } = await captureSnapshot(context, original, FORMER, options);
    options.operation?.concerns({ sandboxId: original.id, snapshotId: former.id });
    const promotion: Promotion = {
      sandbox_id: winner.id,
      former: former.id,
      promoted_at: new Date(context.options.clock.wallMs()).toISOString(),
      ends: [{ sandbox_id: winner.id, epoch: winner.epoch }, ...others],
    };
    await commit(context, original, { winner, snapshot, promotion }, options);
    return promotion;
  } catch (error) {
    const unused = original.facts.lineage.snapshot !== snapshot.id;
    if (unused) await context.reported("removal of the snapshot of a promotion", removeSnapshot(context, snapshot.id));
    throw error;
  }
}

async function commit(
  context: ManagerContext,
  original: LiveSandbox,
  given: { readonly winner: LiveSandbox; readonly snapshot: StoredSnapshot; readonly promotion: Promotion },
  options: VerbOptions,
): Promise<void> {
  const { winner, snapshot, promotion } = given;
  const { epoch } = original;
  const work = { operation: "promote", sandboxId: original.id, backend: original.facts.backend } as const;
  await original.queue.run(() =>
    tracked(context, work, options, async (track) => {
      checkEpoch(context.durable.ownership.held(original.id), epoch);
      const changes = identityOf(original.facts, winner.facts);
      await replaceState(context, original, { snapshotId: snapshot.id, changes, promotion }, track);
      const data = { winner: winner.id, snapshot_id: snapshot.id, former_snapshot_id: promotion.former };
      context.events.append({ type: "sandbox.promoted", sandboxId: original.id, data });
    }),
  );
}

/** The settings of the state come from the winner; everything by which others know the original stays. */
function identityOf(original: SandboxFacts, winner: SandboxFacts): Pick<SandboxFacts, "spec" | "about"> {
  return {
    spec: { ...winner.spec, network: original.spec.network },
    about: { ...original.about, profile: winner.about.profile },
  };
}

function answer(
  context: ManagerContext,
  original: LiveSandbox,
  { sandbox_id: winner, former }: Promotion,
  ended: Ended,
): Promoted {
  return { sandbox: describeLive(context, original), winner, former_snapshot_id: former, ...ended };
}

function alreadyPromoting(sandboxId: string): SandboxerError {
  return new SandboxerError("wrong_state", `Another promotion of the sandbox ${sandboxId} is in progress.`, {
    hint: "Wait until it has ended, then look at the sandbox before you promote another fork.",
    details: { state: "promoting" },
  });
}

function tooMany(count: number): SandboxerError {
  return new SandboxerError(
    "bad_request",
    `The sandbox has ${count} other forks; a promotion deletes ${MOST_ENDED - 1}.`,
    {
      hint: "Promote without discard_others, then delete the other forks with `sandboxer rm`.",
    },
  );
}
