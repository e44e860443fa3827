import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { AcquireRequest, SandboxBackend, SandboxHandle, SnapshotPayload } from "../../../backends/backend.ts";
import type { CallOptions } from "../../../support/call-options.ts";
import { runSetup } from "../../lifecycle/setup-commands.ts";
import type { LostExtras } from "../../files/extra-keeper.ts";
import { loadWay } from "./loadable.ts";
import { archivePath, unpackWorkspace } from "./unpack-workspace.ts";

/** A state that may still be compared with its image while it is loaded. */
export type MaybeVerified = SnapshotPayload & { readonly verified?: Promise<void> };

/**
 * Starts a sandbox from a saved state, which the backend loads or the manager unpacks. On failure nothing is left
 * behind. For an unpacked state, returns what was lost.
 */
export async function acquireWithState(
  backend: SandboxBackend,
  request: AcquireRequest,
  state: MaybeVerified,
  options: CallOptions,
  onUnpacked?: (lost: LostExtras) => void,
): Promise<SandboxHandle> {
  // A backend refuses states that it cannot load at all.
  if (loadWay(backend, state) !== "unpacked") return await acquireWhileVerified(backend, request, state, options);
  await state.verified;
  const path = archivePath(state);
  const handle = await backend.acquire(request, options);
  try {
    // Outside the workspace, setup commands decide; inside it, the captured files win.
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
 * A state that is still being verified is loaded meanwhile, and nobody gets the sandbox before that is done. A sandbox
 * that could reach others over a network waits.
 */
async function acquireWhileVerified(
  backend: SandboxBackend,
  request: AcquireRequest,
  state: MaybeVerified,
  options: CallOptions,
): Promise<SandboxHandle> {
  if (request.spec.network !== "none") await state.verified;
  const handle = await backend.acquireFromSnapshot(request, state, options).catch((error: unknown) => {
    throw asMisfit(error);
  });
  try {
    await state.verified;
    return handle;
  } catch (error) {
    await destroyed(handle, error);
    throw error;
  }
}

/** Another server may be able to load it. */
function asMisfit(thrown: unknown): unknown {
  if (!(thrown instanceof SandboxerError) || thrown.code !== "image_incompatible") return thrown;
  const { code, message, hint, details } = thrown;
  return new SandboxerError(code, message, { cause: thrown, hint, details: { misfit: "image", ...details } });
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
