import type { Head } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import { eraseHead } from "./residence.ts";
import { leavesNothing } from "../../lease/stored-head.ts";

/**
 * Runs when a server starts on a machine where others have died. Their sandboxes at providers are released, and their
 * backends are opened, which cleans up. Sandboxes of which nothing is left are deleted. Saved sandboxes stay in the
 * store until they are resumed.
 */
export async function settleOrphans(context: ManagerContext, dead: ReadonlySet<string>): Promise<void> {
  const opened = new Set<string>();
  for await (const { sandboxId, head } of context.durable.ownership.list()) {
    if (head?.owner == null || !dead.has(head.owner)) continue;
    const kept = head.residence === "provider";
    if (!kept && !leavesNothing(head)) continue;
    if (kept && !opened.has(head.backend)) await context.options.backends.get(head.backend)?.probe();
    opened.add(head.backend);
    await context.reported("release of a dead server's sandbox", settle(context, sandboxId, head));
  }
}

/** A server that claims the sandbox meanwhile wins. */
async function settle(context: ManagerContext, sandboxId: string, head: Head): Promise<void> {
  const { ownership } = context.durable;
  await context.taking.run(sandboxId, async () => {
    if (context.sandboxes.has(sandboxId)) return;
    if (leavesNothing(head)) return eraseHead(context, sandboxId);
    const { epoch } = await ownership.claim(sandboxId);
    const stoppedAt = new Date(context.options.clock.wallMs()).toISOString();
    await ownership.release({ id: sandboxId, epoch }, { stoppedAt });
  });
}
