import type { Head } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import { eraseHead } from "./residence.ts";
import { leavesNothing } from "../../lease/stored-head.ts";

/**
 * For the start of a server on a machine where others have died. The sandboxes that they had at providers are nobody's
 * from now on, and their backends are opened, which puts in order what was left there. Those of which nothing is left are
 * destroyed. What is saved to the store waits there for whoever wants it.
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

/** Whoever takes the sandbox up meanwhile is first. */
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
