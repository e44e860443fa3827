import { SandboxerError } from "@sandboxer/protocol";
import { checkSnapshotName } from "../../checkpoints/snapshot-record.ts";
import type { CallOptions } from "../../support/call-options.ts";
import type { ManagerContext } from "../context.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { captureSnapshot } from "./capture.ts";
import { removeSnapshot } from "./remove-snapshot.ts";

/**
 * Saves the files of a sandbox under a name, for new sandboxes to start from. The sandbox goes on. The name goes over in
 * one step, and what had it before goes, unless it is pinned, or a sandbox that is there began with it.
 */
export async function snapshotFilesystem(
  context: ManagerContext,
  sandbox: LiveSandbox,
  name: string,
  options: CallOptions = {},
): Promise<void> {
  if (!context.durable.saves)
    throw new SandboxerError("checkpoint_disabled", "Filesystem snapshot is not enabled on the server.");
  checkSnapshotName(name);
  const request = { reason: "named", name, mode: "filesystem", replaceName: true } as const;
  const { replacedId } = await captureSnapshot(context, sandbox, request, options);
  if (replacedId === undefined) return;
  await removeSnapshot(context, replacedId).catch((error: unknown) => {
    const stays = ["snapshot_in_use", "snapshot_pinned", "snapshot_not_found"];
    const expected = error instanceof SandboxerError && stays.includes(error.code);
    if (!expected) context.options.observer.problem("removal of a replaced snapshot", { error });
  });
}
