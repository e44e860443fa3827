import { type Head, SandboxerError } from "@sandboxer/protocol";
import type { Failure, Holder } from "./core/effects.ts";

/** Converts the failure of a command to an error for its caller. */
export function failureAsError(sandboxId: string, failure: Failure): unknown {
  switch (failure.kind) {
    case "not-found":
      return new SandboxerError("sandbox_not_found", `The store has no sandbox ${sandboxId}.`);
    case "destroyed":
      return new SandboxerError("sandbox_destroyed", `The sandbox ${sandboxId} was destroyed.`);
    case "already-there":
      return new SandboxerError("wrong_state", `The store already has a sandbox ${sandboxId}.`);
    case "held":
      return held(sandboxId, failure.holder, "", undefined);
    case "refused":
      return held(sandboxId, failure.holder, ` It was not given up: ${failure.reason}.`, failure.reason);
    case "timed-out":
      return held(sandboxId, failure.holder, " It was not given up in time.", "timed out");
    case "lost":
      return lost(sandboxId, failure.head);
    case "error":
      return failure.error;
  }
}

function held(sandboxId: string, { head, url }: Holder, more: string, refused: string | undefined): SandboxerError {
  const holder = url === undefined ? `the instance ${head.owner}` : `${url} (instance ${head.owner})`;
  const message = `The sandbox ${sandboxId} is owned by ${holder} at epoch ${head.epoch}.${more}`;
  const details = { holder: head.owner, holder_url: url, url: url ?? null, epoch: head.epoch };
  return new SandboxerError("lease_held", message, {
    details: refused === undefined ? details : { ...details, refused },
  });
}

/** `head` is the stored one; undefined if this instance did not own the sandbox to begin with. */
function lost(sandboxId: string, head: Head | undefined): SandboxerError {
  const now =
    head === undefined
      ? "this server does not own it"
      : `it is at epoch ${head.epoch}, owned by ${head.owner ?? "no server"}`;
  return new SandboxerError("lease_lost", `This server has lost the sandbox ${sandboxId}: ${now}.`, {
    details: { holder: head?.owner, epoch: head?.epoch },
  });
}
