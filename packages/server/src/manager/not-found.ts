import { SandboxerError } from "@sandboxer/protocol";

/** The id comes from a client and may be any text. */
export function notFound(sandboxId: string): SandboxerError {
  return new SandboxerError("sandbox_not_found", `There is no sandbox ${JSON.stringify(sandboxId.slice(0, 100))}.`);
}

export function wasDestroyed(sandboxId: string): SandboxerError {
  return new SandboxerError("sandbox_destroyed", `The sandbox ${sandboxId} was destroyed.`);
}

export function checkpointNotFound(name: string, hint?: string): SandboxerError {
  const message = `The sandbox has no checkpoint ${JSON.stringify(name.slice(0, 100))}.`;
  return new SandboxerError("checkpoint_not_found", message, hint === undefined ? {} : { hint });
}
