import { SandboxerError } from "@sandboxer/protocol";
import type { CallOptions } from "../support/call-options.ts";
import type { ManagerContext } from "./context.ts";
import type { LiveSandbox } from "./live-sandbox.ts";
import { Stopwatch } from "./stopwatch.ts";
import { withWorkFolder } from "./work-folder.ts";

/** Saves the files of a sandbox under a name, for new sandboxes to start from. The sandbox goes on. */
export async function snapshotFilesystem(
  context: ManagerContext,
  sandbox: LiveSandbox,
  name: string,
  options: CallOptions = {},
): Promise<void> {
  const { durable, observer, clock } = context.options;
  if (durable === undefined)
    throw new SandboxerError("checkpoint_disabled", "Filesystem snapshot is not enabled on the server.");
  const stopwatch = new Stopwatch(clock);
  const record = { operation: "filesystem_snapshot", sandboxId: sandbox.id, backend: sandbox.facts.backend } as const;
  try {
    const saved = await sandbox.queue.run(() =>
      withWorkFolder(context.options.workDirectory, async (folder) => {
        const state = await sandbox.handle.snapshot(folder, { ...options, mode: "filesystem", leaveRunning: true });
        stopwatch.lap("save");
        return durable.snapshots.save(name, state, { ...options, wallMs: clock.wallMs(), sandboxId: sandbox.id });
      }),
    );
    stopwatch.lap("pack");
    const { elapsedMs, phases } = stopwatch;
    observer.operation({ ...record, elapsedMs, outcome: "ok", sizeBytes: saved.size_bytes, phases });
  } catch (error) {
    observer.operation({ ...record, elapsedMs: stopwatch.elapsedMs, outcome: "error", error });
    throw error;
  }
}
