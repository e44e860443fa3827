import type { Caller, OperationRecord, WireOptions } from "./call-types.ts";
import { errorOfFields } from "./errors.ts";

/** How long a look at an operation waits for its end, in seconds: what progress is shown every so often. */
const LOOK_SECONDS = 0.5;

/** Looks at an operation until it has ended; tells each look. Gives what the call would have answered. */
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
