import type { OutlivingRecord } from "../../records/sandbox-records.ts";
import type { ManagerContext } from "../context.ts";

/**
 * For the start of a server: sandboxes that were run at their providers by processes of this machine that have died.
 * Their backends are opened, and put in order what was left; their records say that nobody runs them.
 */
export async function settleOrphans(context: ManagerContext): Promise<void> {
  const { records, backends } = context.options;
  const opened = new Set<string>();
  for (const [sandboxId, record] of await records.list()) {
    if (!isOrphan(context, record)) continue;
    if (!opened.has(record.backend)) await backends.get(record.backend)?.probe();
    opened.add(record.backend);
    await context.taking.run(sandboxId, () => noteStopped(context, sandboxId));
  }
}

/** Somebody may have taken it up meanwhile, or destroyed it. */
async function noteStopped(context: ManagerContext, sandboxId: string): Promise<void> {
  const { records, clock } = context.options;
  const record = await records.get(sandboxId);
  if (record === undefined || !isOrphan(context, record) || context.sandboxes.has(sandboxId)) return;
  const stopped = { ...record, stopped_at: new Date(clock.wallMs()).toISOString(), holder: null };
  // Another process may be faster, which takes it up: then it is not stopped.
  await records.swap(sandboxId, record, stopped);
}

function isOrphan({ options }: ManagerContext, { stopped_at, holder }: OutlivingRecord): boolean {
  return stopped_at === null && holder !== null && options.isHolderGone?.(holder) === true;
}
