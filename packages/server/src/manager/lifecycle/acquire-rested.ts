import type { ManagerContext } from "../context.ts";

/**
 * Whether a sandbox was stopped for longer than sandboxes with a key are kept: then its key stands for nothing. One that
 * somebody runs was not stopped, and of one that is not known to be stored its provider has to judge.
 */
export async function restedTooLong(context: ManagerContext, sandboxId: string): Promise<boolean> {
  if (context.sandboxes.has(sandboxId)) return false;
  const { clock, records, resumeTtlMs } = context.options;
  const head = await context.storedHead(sandboxId);
  const since =
    head === undefined
      ? (await records.get(sandboxId))?.stopped_at
      : head.owner === null
        ? head.timestamps.updated_at
        : undefined;
  return since != null && clock.wallMs() - Date.parse(since) > resumeTtlMs;
}
