import { type Head, SandboxerError } from "@sandboxer/protocol";

export function notFound(sandboxId: string): SandboxerError {
  return new SandboxerError("sandbox_not_found", `The store has no sandbox ${sandboxId}.`);
}

export function destroyed(sandboxId: string): SandboxerError {
  return new SandboxerError("sandbox_destroyed", `The sandbox ${sandboxId} was destroyed.`);
}

export function held(sandboxId: string, head: Head, holderUrl: string | undefined): SandboxerError {
  const holder = holderUrl === undefined ? `the instance ${head.owner}` : `${holderUrl} (instance ${head.owner})`;
  return new SandboxerError("lease_held", `The sandbox ${sandboxId} is owned by ${holder} at epoch ${head.epoch}.`, {
    details: { holder: head.owner, holder_url: holderUrl, epoch: head.epoch },
  });
}

/** `head` is what is stored now; undefined where this instance did not own the sandbox to begin with. */
export function lost(sandboxId: string, head: Head | undefined): SandboxerError {
  const now =
    head === undefined ? "it does not own it" : `it is at epoch ${head.epoch}, owned by ${head.owner ?? "nobody"}`;
  return new SandboxerError("lease_lost", `This server has lost the sandbox ${sandboxId}: ${now}.`, {
    details: { holder: head?.owner, epoch: head?.epoch },
  });
}
