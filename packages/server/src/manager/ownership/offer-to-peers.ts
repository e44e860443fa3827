import { asSandboxerError } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import { otherServer } from "./owner-elsewhere.ts";
import type { LeftSandbox } from "./peers.ts";
import { serversWithRoom } from "./servers-with-room.ts";

/**
 * Asks the better of two other servers to resume a sandbox that this one has saved and released, then the other one.
 * They answer at once, and resume it when their turn comes. False: none of them accepts it, and it stays paused.
 */
export async function offerToPeers(context: ManagerContext, left: LeftSandbox): Promise<boolean> {
  const { peers, observer } = context.options;
  if (peers === undefined) return false;
  const { instances } = context.durable.ownership;
  const search = {
    others: () => instances.liveOthers,
    serverOf: (instanceId: string) => otherServer(context, instanceId),
    condition: (url: string) => peers.condition(url),
  };
  const { sandboxId, from } = left;
  for await (const { url, instanceId: to } of serversWithRoom(search, 1)) {
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
