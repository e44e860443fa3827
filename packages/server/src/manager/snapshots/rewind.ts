import type { ManagerContext } from "../context.ts";
import { checkRewindTo } from "../encryption.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { tracked, type VerbOptions } from "../observing/operations/tracked.ts";
import { checkLoadable } from "./portable/loadable.ts";
import { checkReplaceable, replaceState } from "./replace-state.ts";
import { findSnapshot, labelOf } from "./source.ts";

/** Rewinds a sandbox to a snapshot, with the same id, token and epoch. */
export async function rewindSandbox(
  context: ManagerContext,
  sandbox: LiveSandbox,
  idOrName: string,
  options: VerbOptions = {},
): Promise<void> {
  checkReplaceable(context, sandbox);
  const snapshot = await findSnapshot(context, idOrName);
  checkLoadable(context, context.backend(sandbox.facts.backend), labelOf(snapshot));
  await checkRewindTo(context, sandbox, snapshot);
  options.operation?.concerns({ snapshotId: snapshot.id });
  const work = { operation: "rewind", sandboxId: sandbox.id, backend: sandbox.facts.backend } as const;
  await sandbox.queue.run(() =>
    tracked(context, work, options, async (track) => {
      await replaceState(context, sandbox, { snapshotId: snapshot.id, changes: {} }, track);
      context.events.append({
        type: "sandbox.rewound",
        sandboxId: sandbox.id,
        data: { snapshot_id: snapshot.id, name: snapshot.name },
      });
    }),
  );
}
