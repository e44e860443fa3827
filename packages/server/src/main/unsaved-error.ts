import { SandboxerError } from "@sandboxer/protocol";
import type { UnsavedSandbox } from "../manager/lifecycle/drain/drain.ts";

/** What a server says at its end of the sandboxes that the store has not taken, one in each line. */
export function unsavedError(unsaved: readonly UnsavedSandbox[]): SandboxerError {
  const lines = unsaved.map(({ sandboxId, reason, folder }) =>
    folder === undefined
      ? `  ${sandboxId}: lost since its last checkpoint: ${reason}`
      : `  ${sandboxId}: kept in ${folder}: ${reason}`,
  );
  const what = unsaved.length === 1 ? "A sandbox is" : `${unsaved.length} sandboxes are`;
  const hint = unsaved.some(({ folder }) => folder !== undefined)
    ? "Start a server on this machine, with the same data directory and store: it brings to the store what is kept here."
    : "What was saved before is intact. Look at the log for what has failed.";
  return new SandboxerError("checkpoint_failed", `${what} not in the store:\n${lines.join("\n")}`, {
    hint,
    details: { sandboxes: unsaved.map(({ sandboxId, folder }) => ({ id: sandboxId, folder: folder ?? null })) },
  });
}
