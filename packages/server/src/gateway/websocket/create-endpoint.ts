import {
  asSandboxerError,
  CloseCode,
  CREATION_FIELDS,
  creationMessageSchema,
  parseObject,
  SandboxerError,
  type CreationMessage,
} from "@sandboxer/protocol";
import { z } from "zod";
import type { Sandbox } from "../../manager/sandbox.ts";
import type { Connection } from "./connection.ts";

/** `/create`: the first message is the configuration; then the session. */
export async function serveCreate(connection: Connection, firstMessageMs: number): Promise<void> {
  const { outbox } = connection;
  connection.letIn();
  const first = await connection.inbox.next(firstMessageMs);
  if (first === "closed") return;
  outbox.status("CREATING");
  let created: { readonly sandbox: Sandbox; readonly token: string };
  try {
    if (first === "late")
      throw new SandboxerError("timeout", `No configuration was received within ${firstMessageMs / 1000} seconds.`);
    const message = readConfiguration(connection, first.text);
    const onOwnership = (step: "acquiring" | "acquired"): void => {
      if (message.enable_sandbox_handoff === true)
        outbox.status(step === "acquiring" ? "LOCK_ACQUIRING" : "LOCK_ACQUIRED");
    };
    created = await connection.actor.does(
      "create",
      {},
      async () => {
        const { manager, actor, encryption } = connection;
        const tenant = actor.who.id;
        return manager.createFromMessage(message, { client: connection, onOwnership }, { tenant, encryption });
      },
      ({ sandbox: { id } }) => ({ sandboxId: id, epoch: connection.manager.epochOf(id) }),
    );
  } catch (error) {
    outbox.error("CREATION_ERROR", asSandboxerError(error));
    return connection.turnAway(CloseCode.applicationError);
  }
  const { sandbox, token } = created;
  // Nobody else knows its id: a sandbox whose creator disconnected would only wait for its end.
  if (connection.gone.aborted) {
    await connection.manager.destroy(sandbox);
    return;
  }
  outbox.send({ event: "sandbox_id", sandbox_id: sandbox.id, sandbox_token: token });
  outbox.status("RUNNING");
  await connection.serve(sandbox);
}

function readConfiguration(connection: Connection, text: string | undefined): CreationMessage {
  const value = text === undefined ? undefined : parseObject(text);
  if (value === undefined) throw new SandboxerError("bad_request", "The configuration is not a JSON object.");
  // Also for errors about a configuration that is invalid in other ways.
  connection.outbox.extensions = value["extensions"] === true;
  const unknown = Object.keys(value).filter((field) => !CREATION_FIELDS.includes(field));
  if (unknown.length > 0) connection.log.info({ fields: unknown.slice(0, 20) }, "unknown fields in the configuration");
  const parsed = creationMessageSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new SandboxerError("bad_request", `The configuration is not valid: ${z.prettifyError(parsed.error)}`);
}
