import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { Credentials } from "../../../manager/token.ts";
import type { KeyWatch } from "../../access/key-watch.ts";
import type { ConnectionParts } from "../connection.ts";
import { ProcessSession } from "./process-session.ts";
import { ProcessWire } from "./process-wire.ts";

export interface ProcessParameters {
  readonly sandboxId: string;
  readonly processId: string;
  readonly credentials: Credentials;
  /** As in the query. */
  readonly offset: string | undefined;
}

/** `/v1/sandboxes/{id}/processes/{process_id}/attach`: the output of a process with exact offsets, and its stdin. */
export async function serveProcess(
  parts: ConnectionParts,
  parameters: ProcessParameters,
  watch: KeyWatch,
): Promise<void> {
  const { socket, admission, manager, actor } = parts;
  const wire = new ProcessWire(socket);
  watch.add({ actor, gone: wire.gone, sendAway: (error) => wire.error(error) });
  let release = (): void => {};
  try {
    const offset = offsetOf(parameters.offset);
    const { sandboxId, processId, credentials } = parameters;
    const { sandbox, process } = await actor.does(
      "attach_process",
      { sandboxId },
      () => manager.processes.attach(sandboxId, processId, credentials),
      () => ({ epoch: manager.epochOf(sandboxId) }),
    );
    release = manager.hold(sandbox, "an attached terminal");
    const session = new ProcessSession(process, wire, (bytes) => manager.countOutput(bytes));
    socket.on("message", (data: Buffer, isBinary: boolean) => {
      manager.touch(sandbox);
      session.handle(data, isBinary);
    });
    // Early messages wait until the session is ready.
    await session.run(offset, () => admission.letIn());
  } catch (error) {
    admission.turnAway(() => wire.error(asSandboxerError(error)));
  } finally {
    release();
  }
}

function offsetOf(text: string | undefined): number | undefined {
  if (text === undefined || text === "") return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new SandboxerError("bad_request", "offset must be a count of bytes.");
}
