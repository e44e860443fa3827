import { asSandboxerError, CloseCode, type SandboxerError } from "@sandboxer/protocol";
import type { LiveSandbox } from "../../manager/live-sandbox.ts";
import type { Connection } from "./connection.ts";
import type { Outbox } from "./outbox.ts";

export interface AttachParameters {
  readonly sandboxId: string;
  readonly token: string | undefined;
  readonly trusted: boolean;
  readonly checkpoint: string | undefined;
}

/** `/attach/{sandbox_id}`: a live sandbox, or one that is brought back from the store. */
export async function serveAttach(connection: Connection, parameters: AttachParameters): Promise<void> {
  const { outbox } = connection;
  let sandbox: LiveSandbox;
  try {
    sandbox = await connection.manager.attach({
      sandboxId: parameters.sandboxId,
      credentials: { token: parameters.token, trusted: parameters.trusted },
      checkpoint: parameters.checkpoint,
      client: connection,
      onRestoring: () => outbox.status("RESTORING"),
      onOwnership: (step, head) => {
        if (head.flags.enable_sandbox_handoff) outbox.status(step === "acquiring" ? "LOCK_ACQUIRING" : "LOCK_ACQUIRED");
      },
    });
  } catch (error) {
    return refuse(outbox, asSandboxerError(error));
  }
  outbox.status("RUNNING");
  await connection.serve(sandbox);
}

function refuse(outbox: Outbox, error: SandboxerError): void {
  switch (error.code) {
    case "sandbox_in_use":
    case "lease_held":
      outbox.status("IN_USE");
      return outbox.close(CloseCode.serverError);
    case "sandbox_not_found":
    case "sandbox_destroyed":
      outbox.status("NOT_FOUND");
      return outbox.close(CloseCode.serverError);
    case "permission_denied":
      outbox.error("PERMISSION_DENIAL_ERROR", error);
      return outbox.close(CloseCode.applicationError);
    default:
      outbox.error("RESTORE_ERROR", error);
      return outbox.close(CloseCode.applicationError);
  }
}
