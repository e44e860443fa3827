import type { Caller, OperationRecord, WireOptions } from "./call-types.ts";
import { errorOfFields } from "./errors.ts";

/** How long one poll of an operation waits for its end, in seconds; progress is shown as often. */
const LOOK_SECONDS = 0.5;

/** Polls an operation until it ends, and reports each poll. Returns the call's response. */
export async function followOperation(
  transport: Caller,
  begun: OperationRecord,
  { onProgress, signal, url }: WireOptions,
): Promise<unknown> {
  let operation = begun;
  for (;;) {
    onProgress?.(operation);
    if (operation.state === "failed") throw errorOfFields(operation.error ?? {});
    if (operation.state === "done") return operation.result ?? undefined;
    operation = await transport.call(
      "getOperation",
      { params: { id: operation.id }, query: { wait: onProgress === undefined ? 60 : LOOK_SECONDS } },
      { signal, url },
    );
  }
}
