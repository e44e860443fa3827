import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { SandboxHandle } from "../../backends/backend.ts";
import { acquireRequest } from "./acquire-request.ts";
import type { ManagerContext } from "../context.ts";
import { discardLostSandbox, leaseLost } from "./end-of-sandbox.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { type NetworkAccess, openNetwork } from "../network/network-access.ts";
import { checkFree, switchCopy } from "./replace-copy.ts";
import { runSetup } from "./setup-commands.ts";
import { tracked, type Track, type VerbOptions } from "../observing/operations/tracked.ts";

/**
 * Creates a sandbox again with the same settings, id and token. The new copy is created before the old one is ended: if
 * that fails, nothing has changed. Its older checkpoints are kept.
 */
export async function recreateSandbox(
  context: ManagerContext,
  sandbox: LiveSandbox,
  options: VerbOptions = {},
): Promise<void> {
  const { backend } = sandbox.facts;
  // Unlike a rewind, this gives the new copy no number of its own, so a provider could not tell the two apart.
  if (sandbox.facts.residence === "provider") {
    throw new SandboxerError("not_supported", `The backend ${backend} cannot recreate a sandbox in place.`, {
      hint: "Create a new sandbox and delete this one.",
    });
  }
  const work = { operation: "recreate", sandboxId: sandbox.id, backend } as const;
  await sandbox.queue.run(() =>
    tracked(context, work, options, async (track) => {
      await sandbox.liveSaves.callOff();
      checkFree(sandbox);
      const fresh = await makeCopy(context, sandbox, track);
      track.lap("backend");
      const old = switchCopy(context, sandbox, fresh, []);
      await context.reported("end of the previous copy", old.destroy());
      track.lap("end of the old copy");
    }),
  );
}

/** A copy that is not yet the sandbox. */
async function makeCopy(
  context: ManagerContext,
  sandbox: LiveSandbox,
  track: Track,
): Promise<{ handle: SandboxHandle; network: NetworkAccess }> {
  const { backend, spec } = sandbox.facts;
  const request = await acquireRequest(context, sandbox.facts, track.options);
  const fresh = await context.backend(backend).acquire(request, track.options);
  try {
    const network = await openNetwork(context, sandbox.facts, fresh);
    await runSetup(fresh, spec.setup ?? [], { ...track.options, env: network.environmentBeside(spec.env) });
    // The old copy may end, be lost to another server, or get a client meanwhile; others detect that.
    checkFree(sandbox);
    if (!context.durable.ownership.holds(sandbox)) throw leaseLost();
    return { handle: fresh, network };
  } catch (thrown) {
    await context.reported("end of a discarded copy", fresh.destroy());
    const error = asSandboxerError(thrown);
    if (error.code === "lease_lost") await discardLostSandbox(context, sandbox, error);
    throw thrown;
  }
}
