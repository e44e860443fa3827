import { SandboxerError, type Head } from "@sandboxer/protocol";
import { checkpointMs } from "../../../checkpoints/checkpoint-names.ts";
import type { KeyOptions } from "../../../checkpoints/data-keys.ts";
import type { CallOptions } from "../../../support/call-options.ts";
import type { ObservingContext } from "../../room-contexts.ts";

export function wakeFrom(sandboxId: string, checkpoint: string): string {
  return `Attach with ?checkpoint=${checkpoint}, which is intact (\`sandboxer attach ${sandboxId} --checkpoint ${checkpoint}\`). Later changes are lost.`;
}

/**
 * For a damaged checkpoint: the same error, with the newest other checkpoint that is intact in every byte. The check
 * takes about as long as the restore would have.
 */
export async function namingWholeCheckpoint(
  { durable }: Pick<ObservingContext, "durable">,
  { sandboxId, head, damaged }: { readonly sandboxId: string; readonly head: Head; readonly damaged: string },
  error: unknown,
  options: CallOptions & KeyOptions,
): Promise<unknown> {
  if (!(error instanceof SandboxerError) || error.code !== "image_damaged") return error;
  const newestMs = checkpointMs(head.checkpoint?.name ?? damaged) ?? Infinity;
  const others = (await durable.checkpoints.list(sandboxId)).filter(
    ({ name }) => name !== damaged && (checkpointMs(name) ?? Infinity) <= newestMs,
  );
  let isKnown = true;
  for (const { name } of others) {
    options.signal?.throwIfAborted();
    const whole = await isWhole(durable, sandboxId, name, options);
    if (whole === true) return changed(error, wakeFrom(sandboxId, name), { whole_checkpoint: name });
    isKnown &&= whole === false;
  }
  if (!isKnown) return error;
  const hint =
    "No other checkpoint of the sandbox is intact. Restore a snapshot of it, or restore the store from a backup.";
  return changed(error, hint, { whole_checkpoint: null });
}

/** Undefined: unknown. */
async function isWhole(
  { checkpoints }: ObservingContext["durable"],
  sandboxId: string,
  name: string,
  options: CallOptions & KeyOptions,
): Promise<boolean | undefined> {
  try {
    await checkpoints.verify(sandboxId, name, options);
    return true;
  } catch (error) {
    // An image that cannot be checked, for example because of a missing key, does not change the original error.
    return error instanceof SandboxerError && error.code === "image_damaged" ? false : undefined;
  }
}

function changed(error: SandboxerError, hint: string, details: Readonly<Record<string, unknown>>): SandboxerError {
  return new SandboxerError(error.code, error.message, {
    cause: error,
    hint,
    details: { ...error.details, ...details },
  });
}
