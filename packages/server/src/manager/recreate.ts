import { SandboxerError } from "@sandboxer/protocol";
import { acquireRequest } from "./acquire-request.ts";
import type { ManagerContext } from "./context.ts";
import { watchForEnd } from "./end-of-sandbox.ts";
import type { LiveSandbox } from "./live-sandbox.ts";
import { runSetup } from "./setup-commands.ts";
import { tracked, type VerbOptions } from "./tracked.ts";

/**
 * Makes a sandbox anew from what it was made of, under the same id and token. The new copy is made before the old one is
 * ended: when that fails nothing has changed. Its older checkpoints stay, for whoever wants to go back.
 */
export async function recreateSandbox(
  context: ManagerContext,
  sandbox: LiveSandbox,
  options: VerbOptions = {},
): Promise<void> {
  const { backend, spec } = sandbox.facts;
  const work = { operation: "recreate", sandboxId: sandbox.id, backend } as const;
  await sandbox.queue.run(() =>
    tracked(context, work, options, async (track) => {
      if (sandbox.state !== "running") throw new SandboxerError("wrong_state", `The sandbox is ${sandbox.state}.`);
      if (sandbox.client !== undefined) {
        throw new SandboxerError("sandbox_in_use", "A client is attached to the sandbox.");
      }
      const request = await acquireRequest(context, sandbox.facts, track.options);
      const fresh = await context.backend(backend).acquire(request, track.options);
      try {
        await runSetup(fresh, spec.setup ?? [], track.options);
      } catch (error) {
        await fresh.destroy();
        throw error;
      }
      track.lap("backend");
      const old = sandbox.replaceHandle(fresh);
      watchForEnd(context, sandbox);
      await context.reported("end of the copy before", old.destroy());
      track.lap("end of the old copy");
    }),
  );
}
