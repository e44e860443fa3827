import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { AcquireRequest, SandboxBackend, SandboxHandle, SnapshotPayload } from "../../../backends/backend.ts";
import type { CallOptions } from "../../../support/call-options.ts";
import { runSetup } from "../../lifecycle/setup-commands.ts";
import type { LostExtras } from "../../files/extra-keeper.ts";
import { loadWay } from "./loadable.ts";
import { archivePath, unpackWorkspace } from "./unpack-workspace.ts";

/** A state that may still be held against what it was loaded from. */
export type MaybeVerified = SnapshotPayload & { readonly verified?: Promise<void> };

/**
 * A sandbox with a saved state, whichever way its backend gets at that. On failure nothing is left behind. Of a state that
 * is unpacked, it is said what was lost.
 */
export async function acquireWithState(
  backend: SandboxBackend,
  request: AcquireRequest,
  state: MaybeVerified,
  options: CallOptions,
  onUnpacked?: (lost: LostExtras) => void,
): Promise<SandboxHandle> {
  // What it cannot load at all, a backend refuses by itself.
  if (loadWay(backend, state) !== "unpacked") return await acquireWhileVerified(backend, request, state, options);
  await state.verified;
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

/**
 * A state that is still being held against its image is loaded meanwhile, and nobody gets the sandbox before that is
 * done. One that could reach others on a network waits.
 */
async function acquireWhileVerified(
  backend: SandboxBackend,
  request: AcquireRequest,
  state: MaybeVerified,
  options: CallOptions,
): Promise<SandboxHandle> {
  if (request.spec.network !== "none") await state.verified;
  const handle = await backend.acquireFromSnapshot(request, state, options);
  try {
    await state.verified;
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
