import type { SandboxRecord } from "@sandboxer/protocol";
import type { ManagerContext } from "./context.ts";
import { describeHead, describeLive, describeOutliving, describeStored } from "./describe.ts";
import { notFound } from "./not-found.ts";

export interface SandboxFilter {
  readonly state?: SandboxRecord["state"] | undefined;
  readonly backend?: string | undefined;
  readonly name?: string | undefined;
  readonly key?: string | undefined;
  readonly at_risk?: boolean | undefined;
  /** `KEY` or `KEY=VALUE`; all must match. */
  readonly label?: readonly string[] | undefined;
}

/** One sandbox, wherever it is: here, at another server, stored, or destroyed. */
export async function findSandbox(context: ManagerContext, sandboxId: string): Promise<SandboxRecord> {
  const live = context.sandboxes.get(sandboxId);
  if (live !== undefined) return describeLive(context, live);
  const head = await context.storedHead(sandboxId);
  const record = head === undefined ? await context.options.records.get(sandboxId) : undefined;
  if (record !== undefined) return describeOutliving(context, sandboxId, record);
  if (head === undefined) throw notFound(sandboxId);
  return describeStored(context, sandboxId, head);
}

/** The sandboxes of this server and of its store, newest first. What is destroyed is listed only if asked for. */
export async function listSandboxes(context: ManagerContext, filter: SandboxFilter): Promise<SandboxRecord[]> {
  const found = [...context.sandboxes.values()].map((sandbox) => describeLive(context, sandbox));
  const seen = new Set(found.map(({ id }) => id));
  const { durable, records } = context.options;
  for (const [id, record] of await records.list()) {
    if (!seen.has(id)) found.push(describeOutliving(context, id, record));
    seen.add(id);
  }
  if (durable !== undefined) {
    const servers = await durable.ownership.servers();
    const urls = new Map(servers.map(({ instanceId, url }) => [instanceId, url]));
    for await (const { sandboxId, head, error } of durable.ownership.list()) {
      if (error !== undefined) {
        context.options.observer.problem("a stored sandbox cannot be read", { sandboxId, error });
      }
      if (head === undefined || seen.has(sandboxId)) continue;
      if (head.state === "deleted" && filter.state !== "destroyed") continue;
      found.push(describeHead(context, sandboxId, head, urls.get(head.owner ?? "")));
    }
  }
  return found.filter((record) => matches(record, filter)).toSorted(newestFirst);
}

function matches(record: SandboxRecord, filter: SandboxFilter): boolean {
  if (filter.state !== undefined && record.state !== filter.state) return false;
  if (filter.backend !== undefined && record.backend !== filter.backend) return false;
  if (filter.name !== undefined && record.name !== filter.name) return false;
  if (filter.key !== undefined && record.key !== filter.key) return false;
  if (filter.at_risk !== undefined && (record.durability.at_risk !== null) !== filter.at_risk) return false;
  return hasLabels(record.labels, filter.label);
}

export function hasLabels(labels: Readonly<Record<string, string>>, wanted: readonly string[] | undefined): boolean {
  return (wanted ?? []).every((text) => {
    const [key = "", value] = text.split(/=(.*)/s);
    return Object.hasOwn(labels, key) && (value === undefined || labels[key] === value);
  });
}

function newestFirst(a: SandboxRecord, b: SandboxRecord): number {
  if (a.created_at !== b.created_at) return a.created_at < b.created_at ? 1 : -1;
  return a.id < b.id ? -1 : 1;
}
