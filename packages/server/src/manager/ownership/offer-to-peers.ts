import { asSandboxerError, type Head } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import { fittingServers } from "./fitting-servers.ts";
import type { LeftSandbox } from "./peers.ts";
import { wantedByHead } from "./wanted.ts";

/**
 * Asks the better of two other servers that fit to resume a sandbox which no server runs, then the other one. They
 * answer at once, and resume it when their turn comes. False: none of them accepts it, and it stays paused.
 */
export async function offerToPeers(context: ManagerContext, left: LeftSandbox, head: Head): Promise<boolean> {
  const { peers, observer } = context.options;
  if (peers === undefined) return false;
  const { sandboxId, from } = left;
  const wanted = await wantedByHead(context, sandboxId, head);
  for await (const { url, instanceId: to } of fittingServers(context, wanted, 1)) {
    try {
      await peers.offer(url, left);
      context.recentHandoffs.note(sandboxId);
      context.events.append({ type: "sandbox.handed_over", sandboxId, data: { from, to } });
      return true;
    } catch (error) {
      observer.problem("another server did not accept a sandbox", { sandboxId, to, error: asSandboxerError(error) });
    }
  }
  return false;
}
