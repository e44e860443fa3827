import { asSandboxerError, CloseCode, type SandboxerError } from "@sandboxer/protocol";
import type { AttachRequest } from "../../manager/ownership/attach.ts";
import { IN_USE } from "../../manager/ownership/yield.ts";
import type { Sandbox } from "../../manager/sandbox.ts";
import type { Connection } from "./connection.ts";

export interface AttachParameters {
  readonly sandboxId: string;
  readonly token: string | undefined;
  readonly trusted: boolean;
  readonly checkpoint: string | undefined;
  readonly extensions: boolean;
}

/** `/attach/{sandbox_id}`: a live sandbox, or one that is restored from the store. */
export async function serveAttach(connection: Connection, parameters: AttachParameters): Promise<void> {
  const { outbox } = connection;
  outbox.extensions = parameters.extensions;
  let sandbox: Sandbox;
  try {
    const { sandboxId, token, trusted, checkpoint } = parameters;
    const request: AttachRequest = {
      sandboxId,
      credentials: { token, trusted },
      checkpoint,
      client: connection,
      onRestoring: () => outbox.status("RESTORING"),
      onOwnership: ownershipStatuses(connection),
    };
    sandbox = await connection.actor.does(
      "attach",
      { sandboxId },
      () => connection.manager.attach(request, { encryption: connection.encryption }),
      () => ({ epoch: connection.manager.epochOf(sandboxId) }),
    );
  } catch (error) {
    return refuse(connection, asSandboxerError(error));
  }
  connection.letIn();
  await connection.manager.untilThawed(sandbox);
  outbox.status("RUNNING");
  await connection.serve(sandbox);
}

/** Clients are told of a handoff once the other server has yielded: a refusal comes without it. */
function ownershipStatuses(connection: Connection): AttachRequest["onOwnership"] {
  const { outbox } = connection;
  let waited = false;
  return (step, { flags }) => {
    // The sandbox exists, and the client may use it.
    connection.letIn();
    const locks = flags.enable_sandbox_handoff;
    if (step === "acquiring" && locks) outbox.status("LOCK_ACQUIRING");
    if (step === "waiting") waited = true;
    if (step !== "acquired") return;
    if (waited) outbox.status("HANDOFF_IN_PROGRESS");
    if (locks) outbox.status("LOCK_ACQUIRED");
  };
}

function refuse(connection: Connection, error: SandboxerError): void {
  const { outbox } = connection;
  switch (error.code === "lease_held" && error.details["refused"] === IN_USE ? "sandbox_in_use" : error.code) {
    case "sandbox_in_use":
      outbox.status("IN_USE");
      return connection.turnAway(CloseCode.serverError);
    case "sandbox_not_found":
    case "sandbox_destroyed":
      outbox.status("NOT_FOUND");
      return connection.turnAway(CloseCode.serverError);
    case "permission_denied":
      outbox.error("PERMISSION_DENIAL_ERROR", error);
      return connection.turnAway(CloseCode.applicationError);
    default:
      outbox.error("RESTORE_ERROR", error);
      return connection.turnAway(CloseCode.applicationError);
  }
}
