import { errorOfFields, type Transport } from "@sandboxer/client/transport";
import type { OperationRecordBody } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol/errors";

const LOOK_SECONDS = 0.5;

export interface WaitOptions {
  /** On the clock of `performance.now()`. */
  readonly deadlineMs: number | undefined;
  readonly onProgress: (operation: OperationRecordBody) => void;
}

/** Waits for the end of any operation; throws its error. */
export async function waitForOperation(
  client: Transport,
  id: string,
  { deadlineMs, onProgress }: WaitOptions,
): Promise<OperationRecordBody> {
  for (;;) {
    const operation = await client.call("getOperation", { params: { id }, query: { wait: LOOK_SECONDS } });
    onProgress(operation);
    if (operation.state === "failed") throw errorOfFields(operation.error ?? {});
    if (operation.state === "done") return operation;
    if (deadlineMs !== undefined && performance.now() >= deadlineMs) {
      throw new SandboxerError(
        "timeout",
        `The ${operation.kind} is still in progress (${operation.phase ?? "begun"}).`,
        {
          hint: "Wait longer with --timeout; the server continues the operation either way.",
        },
      );
    }
  }
}
