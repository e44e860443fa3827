import type { Answer, JsonRouteName, CallInput } from "@sandboxer/client/transport";
import { ProgressLine } from "./output/progress.ts";
import type { Run } from "./run.ts";

/**
 * Makes a call that takes a while, and shows its progress to who watches. No answer hangs on one connection: the server
 * says at once which operation it began, and is asked for its end.
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
