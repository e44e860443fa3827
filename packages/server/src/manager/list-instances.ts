import type { ManagerContext } from "./context.ts";

export interface InstanceRecord {
  readonly id: string;
  readonly url: string | null;
  readonly here: boolean;
  readonly alive: boolean;
  /** Known of this server only. */
  readonly frozen: boolean | null;
  readonly owns: string[];
  /** Sandboxes that others have asked it for. */
  readonly wanted: string[];
}

/** Every server on the store, and what each owns. Those that are dead and own nothing are left out. */
export async function listInstances(context: ManagerContext): Promise<InstanceRecord[]> {
  const { durable } = context.options;
  if (durable === undefined) return [];
  const { ownership } = durable;
  const records = new Map<string, InstanceRecord>();
  for (const { instanceId, url, here, alive } of await ownership.servers()) {
    const frozen = here ? ownership.frozen : null;
    records.set(instanceId, { id: instanceId, url: url ?? null, here, alive, frozen, owns: [], wanted: [] });
  }
  for await (const { sandboxId, head } of ownership.list()) {
    const owner = head?.owner == null ? undefined : records.get(head.owner);
    owner?.owns.push(sandboxId);
    if (head?.want != null) owner?.wanted.push(sandboxId);
  }
  return [...records.values()].filter(({ alive, owns }) => alive || owns.length > 0);
}
