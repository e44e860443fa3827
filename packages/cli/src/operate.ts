import type { Answer, JsonRouteName, CallInput } from "@sandboxer/client/transport";
import { ProgressLine } from "./output/progress.ts";
import type { Run } from "./run.ts";

/**
 * Makes a long call, and shows its progress. The response does not depend on one connection: the server returns the
 * operation at once, which is then polled.
 */
export async function operate<Name extends JsonRouteName>(
  run: Run,
  name: Name,
  input: CallInput<Name>,
): Promise<Answer<Name>> {
  const client = await run.client();
  const line = new ProgressLine(run.io, run.json);
  try {
    return await client.call(name, input, { onProgress: line.operation });
  } finally {
    line.end();
  }
}
