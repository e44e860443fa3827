import { type Head, type Promotion, SandboxerError } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import { notFound, wasDestroyed } from "../not-found.ts";

/** A chain of forks of forks that is longer than this is not followed. */
const MOST_GENERATIONS = 64;

export interface Relation {
  /** The winner was promoted already. It is deleted, or about to be. */
  readonly isDone: boolean;
  /** The ancestors of the winner up to the original, nearest first. */
  readonly ancestors: readonly string[];
}

/** Throws unless a sandbox was forked or restored from another one, directly or through sandboxes in between. */
export async function relationOf(context: ManagerContext, winnerId: string, originalId: string): Promise<Relation> {
  const [winner, original] = [await context.storedHead(winnerId), await context.storedHead(originalId)];
  if (original === undefined) throw notFound(originalId);
  if (original.state === "deleted") throw originalDeleted(originalId, winnerId);
  if (isPromoted(original, winnerId, winner)) return { isDone: true, ancestors: [originalId] };
  if (winner === undefined) throw notFound(winnerId);
  if (winner.state === "deleted") throw wasDestroyed(winnerId);
  const path: string[] = [];
  for (let head: Head | undefined = winner; head !== undefined && path.length < MOST_GENERATIONS;) {
    const { sandbox_id: parent } = head.lineage;
    if (parent === null) break;
    path.push(parent);
    if (parent === originalId) return { isDone: false, ancestors: path };
    head = await context.storedHead(parent);
  }
  throw notRelated(winnerId, originalId, path);
}

/** A winner that was claimed since its promotion is a sandbox like others, and can be promoted again. */
function isPromoted({ promotion }: Head, winnerId: string, winner: Head | undefined): boolean {
  if (promotion?.sandbox_id !== winnerId) return false;
  if (winner === undefined || winner.state === "deleted") return true;
  return promotion.ends.some((each) => each.sandbox_id === winnerId && each.epoch === winner.epoch);
}

/** The other forks of the winner's ancestors; sandboxes that were restored from a snapshot are none. */
export async function otherForks(
  context: ManagerContext,
  winnerId: string,
  ancestors: readonly string[],
): Promise<Promotion["ends"]> {
  const others: Promotion["ends"] = [];
  for await (const { sandboxId, head } of context.durable.ownership.list()) {
    if (head === undefined || head.state === "deleted" || sandboxId === winnerId) continue;
    const { fork = null, sandbox_id: parent } = head.lineage;
    if (fork === null || parent === null || !ancestors.includes(parent)) continue;
    if (sandboxId !== ancestors.at(-1)) others.push({ sandbox_id: sandboxId, epoch: head.epoch });
  }
  return others;
}

function originalDeleted(originalId: string, winnerId: string): SandboxerError {
  return new SandboxerError(
    "sandbox_destroyed",
    `The original ${originalId} was deleted, and its id is not used again.`,
    {
      hint: `Keep the fork as it is; \`sandboxer update ${winnerId} --name NAME\` gives it the original's name.`,
    },
  );
}

function notRelated(winnerId: string, originalId: string, ancestors: readonly string[]): SandboxerError {
  const [parent] = ancestors;
  const origin = parent === undefined ? "It was created from scratch" : `It comes from ${ancestors.join(", then ")}`;
  return new SandboxerError(
    "bad_request",
    `The sandbox ${winnerId} was not forked or restored from ${originalId}. ${origin}.`,
    {
      hint: parent === undefined ? "Promote a fork of the sandbox." : `Promote it into ${parent}.`,
      details: { winner: winnerId, ancestors: [...ancestors] },
    },
  );
}
