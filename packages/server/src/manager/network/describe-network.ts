import type { SandboxNetworkRecord } from "@sandboxer/protocol";
import type { RunningContext } from "../room-contexts.ts";
import { runningSandbox } from "../running.ts";
import type { NetworkContext } from "./network-access.ts";
import { storedFacts } from "../stored-facts.ts";

/** The network of a sandbox that runs here or is paused, with the connections that this server refused. */
export async function describeNetwork(
  context: RunningContext & NetworkContext,
  sandboxId: string,
): Promise<SandboxNetworkRecord> {
  const { records, total } = context.refusals(sandboxId);
  const refused = { refused_total: total, refused: [...records] };
  const live = context.sandboxes.get(sandboxId);
  const head = live === undefined ? await context.storedHead(sandboxId) : undefined;
  if (head?.owner === null && head.state !== "deleted") {
    const policy = storedFacts(sandboxId, head).spec.network;
    return { policy, way: null, open_connections: null, sent_bytes: null, received_bytes: null, ...refused };
  }
  const { facts, network } = live ?? (await runningSandbox(context, sandboxId));
  const figures = network?.figures;
  return {
    policy: facts.spec.network,
    way: network?.way ?? null,
    open_connections: figures?.openConnections ?? null,
    sent_bytes: figures?.sentBytes ?? null,
    received_bytes: figures?.receivedBytes ?? null,
    ...refused,
  };
}
