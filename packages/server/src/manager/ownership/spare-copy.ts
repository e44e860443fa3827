import type { ManagerContext } from "../context.ts";
import { acquireRequest } from "../lifecycle/acquire-request.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { storedFacts } from "../stored-facts.ts";

/**
 * The first of three writes to the head by which one copy at a provider replaces another. It announces the new copy as the
 * `spare_copy`. The second write makes the new copy the sandbox and the old one the spare; the third
 * ({@link removeSpare}) says that there is no spare. After a crash in between, the next owner removes the spare copy.
 */
export async function announceCopy(
  context: ManagerContext,
  sandbox: LiveSandbox,
  backend = sandbox.facts.backend,
): Promise<number> {
  const copy = sandbox.facts.copy + 1;
  await context.durable.ownership.update(sandbox, { spare_copy: { backend, copy } });
  return copy;
}

/** Removes the spare copy that a rewind or a move left behind, on this server or on one that died. */
export async function removeSpare(context: ManagerContext, sandboxId: string): Promise<void> {
  const { ownership } = context.durable;
  const head = ownership.held(sandboxId);
  if (head?.spare_copy == null) return;
  const { backend, copy, spec = head.spec } = head.spare_copy;
  const facts = { ...storedFacts(sandboxId, { ...head, spec }), backend, copy };
  const { identity: _, ...request } = await acquireRequest(context, facts);
  const left = await context.backend(backend).tryResume(request);
  await left?.destroy();
  await ownership.update({ id: sandboxId, epoch: head.epoch }, { spare_copy: null });
}
