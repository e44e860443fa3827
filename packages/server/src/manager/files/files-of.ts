import { SandboxerError } from "@sandboxer/protocol";
import type { SandboxFiles } from "../../backends/backend.ts";
import type { ManagerContext } from "../context.ts";
import type { Patience } from "../ownership/freeze.ts";
import { runningSandbox } from "../running.ts";

/** The files of a sandbox that runs here, which is in use until `release` is called. */
export async function filesOf(
  context: ManagerContext,
  sandboxId: string,
  epoch: number | undefined,
  patience?: Patience,
): Promise<{ files: SandboxFiles; release: () => void }> {
  const sandbox = await runningSandbox(context, sandboxId, epoch, patience);
  const { backend } = sandbox.facts;
  if (!context.backend(backend).capabilities.files) {
    throw new SandboxerError("not_supported", `The backend ${backend} has no files.`);
  }
  return { files: sandbox.handle.files, release: sandbox.hold(() => context.nowMs) };
}
