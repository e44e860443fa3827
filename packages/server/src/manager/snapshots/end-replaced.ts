import { asSandboxerError, type ResponseOf, type Routes } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import { destroyById } from "../lifecycle/destroy-by-id.ts";

export type Ended = Pick<ResponseOf<Routes["promoteSandbox"]>, "deleted" | "kept">;

const GONE = new Set(["sandbox_not_found", "sandbox_destroyed"]);

/**
 * Deletes the sandboxes that the last promotion of a sandbox ends, after it is committed: at once, or by the next owner
 * if this server died. A sandbox that was claimed since the promotion is in use again, and is kept.
 */
export async function endReplaced(context: ManagerContext, originalId: string): Promise<Ended> {
  const { ownership } = context.durable;
  const ended: Ended = { deleted: [], kept: [] };
  const { promotion, epoch } = ownership.held(originalId) ?? {};
  if (promotion == null || epoch === undefined || promotion.ends.length === 0) return ended;
  for (const each of promotion.ends) {
    try {
      await destroyById(context, each.sandbox_id, each.epoch);
      ended.deleted.push(each.sandbox_id);
    } catch (thrown) {
      const { code, message } = asSandboxerError(thrown);
      if (GONE.has(code)) ended.deleted.push(each.sandbox_id);
      else ended.kept.push({ id: each.sandbox_id, message });
    }
  }
  const done = ownership.update({ id: originalId, epoch }, { promotion: { ...promotion, ends: [] } });
  await context.reported("record of a finished promotion", done);
  return ended;
}
