import { Sandbox } from "@sandboxer/client";
import type { Run } from "../run.ts";
import { findSandbox } from "../targets/sandbox.ts";

/** A handle on a sandbox that follows handoffs and, by default, resumes it when it is paused. */
export async function openSandbox(run: Run, given: string): Promise<Sandbox> {
  const { id, state } = await findSandbox(await run.client(), given);
  const wake = run.value<boolean>("wake") !== false;
  if (state === "stored" && wake) run.say("sandboxer: the sandbox is paused; resuming it.");
  return sandboxHandle(run, id, wake);
}

/** The SDK's handle, for the same server as the command's own calls. */
export async function sandboxHandle(run: Run, id: string, autoResume = true): Promise<Sandbox> {
  const { url, apiKey, encryptionKey } = await run.client();
  return Sandbox.attach(id, {
    url,
    autoResume,
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(encryptionKey === undefined ? {} : { encryptionKey }),
  });
}
