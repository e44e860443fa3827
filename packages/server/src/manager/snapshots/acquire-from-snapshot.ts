import type { SandboxHandle } from "../../backends/backend.ts";
import type { ManagerContext } from "../context.ts";
import type { LostExtras } from "../files/extra-keeper.ts";
import { acquireRequest } from "../lifecycle/acquire-request.ts";
import type { SandboxFacts } from "../live-sandbox.ts";
import type { Track } from "../observing/operations/tracked.ts";
import { withGoodCopy } from "../saving/with-good-copy.ts";
import { withWorkFolder } from "../saving/work-folder.ts";
import { acquireWithState } from "./portable/acquire-with-state.ts";

/** Starts a copy of a sandbox, described by these facts, from a stored snapshot. */
export async function acquireFromSnapshot(
  context: ManagerContext,
  facts: SandboxFacts,
  snapshotId: string,
  track: Track,
  onUnpacked?: (lost: LostExtras) => void,
): Promise<SandboxHandle> {
  const backend = context.backend(facts.backend);
  const request = await acquireRequest(context, facts, track.options);
  const handle = await withGoodCopy(() =>
    withWorkFolder(context.options.workDirectory, async (folder) => {
      const state = await context.snapshots.load(snapshotId, folder, { ...track.options, verifyBeside: true });
      track.lap("unpack");
      return await acquireWithState(backend, request, state, track.options, onUnpacked);
    }),
  );
  track.lap("backend");
  return handle;
}
