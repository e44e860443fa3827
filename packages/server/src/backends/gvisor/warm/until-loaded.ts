import { setTimeout as delay } from "node:timers/promises";
import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import type { CallOptions } from "../../../support/call-options.ts";
import type { AttachedRunsc, Runsc } from "../runsc.ts";

const LOOK_MS = 25;

const State = z.looseObject({ status: z.string() });

/** Resolves when runsc has loaded an image. The agent in it says nothing before it is spoken to. */
export async function untilLoaded(
  runsc: Runsc,
  containerId: string,
  attached: AttachedRunsc,
  { signal, timeoutMs }: CallOptions & { readonly timeoutMs: number },
): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs;
  const hasEnded = (): boolean => attached.child.exitCode !== null || attached.child.signalCode !== null;
  while (!hasEnded() && performance.now() < deadlineMs) {
    signal?.throwIfAborted();
    if ((await statusOf(runsc, containerId)) === "running") return;
    await delay(LOOK_MS);
  }
  throw new SandboxerError("backend_unavailable", "The engine did not load the image.");
}

/** Undefined while runsc knows nothing of it. */
async function statusOf(runsc: Runsc, containerId: string): Promise<string | undefined> {
  try {
    return State.parse(JSON.parse(await runsc.command(["state", containerId]))).status;
  } catch {
    return undefined;
  }
}
