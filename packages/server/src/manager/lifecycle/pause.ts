import { asSandboxerError } from "@sandboxer/protocol";
import type { Cause, SandboxClient } from "../client.ts";
import type { ManagerContext } from "../context.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { leaveSandbox } from "../ownership/residence.ts";
import { saveAndRelease } from "../saving/save.ts";
import type { VerbOptions } from "../observing/operations/tracked.ts";

/** Saves a sandbox for a reason of the server's own. A failure is told to the client; the sandbox stays. */
export async function saveFor(
  context: ManagerContext,
  sandbox: LiveSandbox,
  cause: Cause,
  lastLook?: () => void,
  options: VerbOptions = {},
): Promise<void> {
  let client: SandboxClient | undefined;
  const begin = (): void => {
    lastLook?.();
    client = sandbox.client;
    client?.notify({ type: "saving", cause });
  };
  try {
    const prepare = async (): Promise<void> => client?.quiesce();
    await saveAndRelease(context, sandbox, { ...options, reason: cause, lastLook: begin, prepare });
    client?.notify({ type: "saved", cause });
  } catch (error) {
    sandbox.touch(context.nowMs);
    client?.notify({ type: "save_failed", cause, error: asSandboxerError(error) });
    throw error;
  }
}

/** Ends the copy here. What is stored stays, at its last checkpoint, and is free for others. */
export async function dropFor(
  context: ManagerContext,
  sandbox: LiveSandbox,
  cause: Cause,
  lastLook?: () => void,
): Promise<void> {
  await sandbox.queue.run(async () => {
    await sandbox.liveSaves.callOff();
    lastLook?.();
    if (sandbox.state === "gone") return;
    const { client } = sandbox;
    sandbox.moveTo("destroying");
    client?.notify({ type: "deleting", cause });
    await leaveSandbox(context, sandbox);
    sandbox.moveTo("gone");
    client?.notify({ type: "deleted", cause });
  });
}
