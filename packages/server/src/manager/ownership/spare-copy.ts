import type { Head } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import { acquireRequest } from "../lifecycle/acquire-request.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { storedFacts } from "../stored-facts.ts";

/**
 * Where providers keep sandboxes, one copy takes another's place in three writes of the head, each by its owner: that a
 * copy is coming, which is the `spare_copy`; that it is the sandbox now, and the one before is the spare; that there is
 * none. Whoever owns the sandbox after a crash in between removes the spare, whichever it is.
 */
export async function announceCopy(
  context: ManagerContext,
  { id, facts }: LiveSandbox,
  backend = facts.backend,
): Promise<number> {
  const copy = facts.copy + 1;
  await context.durable.ownership.update(id, { spare_copy: { backend, copy } });
  return copy;
}

export async function takePlace(
  context: ManagerContext,
  { id, facts }: LiveSandbox,
  changes: { readonly copy: number; readonly lineage: Head["lineage"] },
): Promise<void> {
  const { backend, copy } = facts;
  await context.durable.ownership.update(id, { ...changes, spare_copy: { backend, copy } });
}

/** Removes what a rewind, of this server or of one that died, has left beside a sandbox that is owned here. */
export async function removeSpare(context: ManagerContext, sandboxId: string): Promise<void> {
  const { ownership } = context.durable;
  const head = ownership.held(sandboxId);
  if (head?.spare_copy == null) return;
  const { backend, copy, spec = head.spec } = head.spare_copy;
  const facts = { ...storedFacts(sandboxId, { ...head, spec }), backend, copy };
  const { identity: _, ...request } = await acquireRequest(context, facts);
  const left = await context.backend(backend).tryResume(request);
  await left?.destroy();
  await ownership.update(sandboxId, { spare_copy: null });
}
