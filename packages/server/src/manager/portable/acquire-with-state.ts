import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { AcquireRequest, SandboxBackend, SandboxHandle, SnapshotPayload } from "../../backends/backend.ts";
import type { CallOptions } from "../../support/call-options.ts";
import { runSetup } from "../setup-commands.ts";
import type { LostExtras } from "../trees/extra-keeper.ts";
import { loadWay } from "./loadable.ts";
import { archivePath, unpackWorkspace } from "./unpack-workspace.ts";

/**
 * A sandbox with a saved state, whichever way its backend gets at that. On failure nothing is left behind. Of a state that
 * is unpacked, it is said what was lost.
 */
export async function acquireWithState(
  backend: SandboxBackend,
  request: AcquireRequest,
  state: SnapshotPayload,
  options: CallOptions,
  onUnpacked?: (lost: LostExtras) => void,
): Promise<SandboxHandle> {
  // What it cannot load at all, a backend refuses by itself.
  if (loadWay(backend, state) !== "unpacked") return await backend.acquireFromSnapshot(request, state, options);
  const path = archivePath(state);
  const handle = await backend.acquire(request, options);
  try {
    // Outside of the workspace it is as its setup makes it; in the workspace, what was captured has the last word.
    await runSetup(handle, request.spec.setup ?? [], options);
    const unpacked = await unpackWorkspace(backend, handle, path, options);
    onUnpacked?.(unpacked);
    return handle;
  } catch (error) {
    await destroyed(handle, error);
    throw error;
  }
}

async function destroyed(handle: SandboxHandle, cause: unknown): Promise<void> {
  try {
    await handle.destroy();
  } catch (thrown) {
    const { code, message, hint, details } = asSandboxerError(cause);
    const left = `${message} Then the sandbox ${handle.sandboxId} could not be removed: ${asSandboxerError(thrown).message}`;
    throw new SandboxerError(code, left, { cause, hint, details });
  }
}
