import type { ResponseOf, Routes } from "@sandboxer/protocol";
import { answerWithin } from "../../support/answer-within.ts";
import { mapAtOnce } from "../../support/map-at-once.ts";
import type { RegisteredServer } from "../../lease/instances.ts";
import type { ObservingContext } from "../room-contexts.ts";
import type { InstanceCondition } from "../ownership/peers.ts";

export type InstanceRecord = ResponseOf<Routes["listInstances"]>["items"][number];

/** How long to wait for a store that let this server freeze. */
const STORE_MS = 2_000;

/** Others can write to the store: one call to this server must not become thousands of calls to others. */
const MOST_ASKED = 256;
const ASKED_AT_ONCE = 64;

const UNKNOWN: InstanceCondition = { instance_id: null, frozen: null, frozen_reason: null };

/** `image`: whether it is on this machine is told, too. */
export async function conditionFor(context: ObservingContext, image: string | undefined): Promise<InstanceCondition> {
  const condition = instanceCondition(context);
  const { images } = context.options;
  if (image === undefined || images === undefined) return condition;
  return { ...condition, has_image: await images.has(image).catch(() => false) };
}

function instanceCondition(context: ObservingContext): InstanceCondition {
  const { instanceId, frozenReason } = context.durable.ownership.instances;
  const condition = {
    instance_id: instanceId,
    frozen: frozenReason !== undefined,
    frozen_reason: frozenReason ?? null,
  };
  return context.draining ? condition : { ...condition, room: context.room() };
}

/**
 * Every server of the store and the sandboxes it owns. Dead servers that own nothing are left out. A server that lost
 * its store knows only itself.
 */
export async function listInstances(context: ObservingContext): Promise<InstanceRecord[]> {
  if (!context.durable.ownership.instances.frozen) return storedInstances(context);
  const listed = storedInstances(context).catch(() => undefined);
  return (await answerWithin(context.options.clock, STORE_MS, listed)) ?? [thisInstance(context)];
}

async function storedInstances(context: ObservingContext): Promise<InstanceRecord[]> {
  const servers = await context.durable.ownership.instances.servers();
  const [conditions, possessions] = await Promise.all([conditionsOf(context, servers), possessionsByOwner(context)]);
  const records = servers.map(({ instanceId, url, here, alive, labels = {} }): InstanceRecord => {
    const { frozen, frozen_reason } = here ? instanceCondition(context) : (conditions.get(instanceId) ?? UNKNOWN);
    const { owns, wanted, handoffs } = possessions.get(instanceId) ?? { owns: [], wanted: [], handoffs: [] };
    return { id: instanceId, url: url ?? null, here, alive, labels, frozen, frozen_reason, owns, wanted, handoffs };
  });
  return records.filter(({ alive, owns }) => alive || owns.length > 0);
}

type Possessions = Pick<InstanceRecord, "owns" | "wanted" | "handoffs">;

async function possessionsByOwner({ durable }: ObservingContext): Promise<ReadonlyMap<string, Possessions>> {
  const owners = new Map<string, Possessions>();
  for await (const { sandboxId, head } of durable.ownership.list()) {
    if (head?.owner == null) continue;
    const { owns, wanted, handoffs } = owners.get(head.owner) ?? { owns: [], wanted: [], handoffs: [] };
    owners.set(head.owner, { owns, wanted, handoffs });
    owns.push(sandboxId);
    if (head.want === null) continue;
    wanted.push(sandboxId);
    const { instance_id: to, refused = null } = head.want;
    handoffs.push({ sandbox_id: sandboxId, to, refused });
  }
  return owners;
}

/** The other servers' own answers; a different server that answers at the address is ignored. */
async function conditionsOf(
  { options }: ObservingContext,
  servers: readonly RegisteredServer[],
): Promise<ReadonlyMap<string, InstanceCondition>> {
  const others = servers.filter(({ here, alive }) => !here && alive).slice(0, MOST_ASKED);
  const conditions = new Map<string, InstanceCondition>();
  await mapAtOnce(others, ASKED_AT_ONCE, async ({ instanceId, url }) => {
    const said = url === undefined ? undefined : await options.peers?.condition(url);
    if (said?.instance_id === instanceId) conditions.set(instanceId, said);
  });
  return conditions;
}

/** As far as this server knows without its store. */
function thisInstance(context: ObservingContext): InstanceRecord {
  const { frozen, frozen_reason } = instanceCondition(context);
  const { url = null, labels = {} } = context.options;
  const { instanceId: id } = context.durable.ownership;
  const owns = [...context.sandboxes.keys()];
  return { id, url, here: true, alive: true, labels, frozen, frozen_reason, owns, wanted: [], handoffs: [] };
}
