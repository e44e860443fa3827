import { asSandboxerError, SandboxerError } from "@sandboxer/protocol/errors";
import type { RemovedData } from "@sandboxer/protocol";
import { defineCommand } from "../define-command.ts";
import { formatRemovedBytes } from "../output/removed-bytes.ts";
import { findSandboxes } from "../targets/sandbox.ts";

export const rmCommand = defineCommand({
  arguments: "<sandbox...>",
  examples: [
    "sandboxer rm web",
    "sandboxer rm web-1 web-2",
    "sandboxer ls -q --label temporary | xargs -r sandboxer rm",
  ],
  details: "Looks up all names before it deletes anything. Prints the ids of the deleted sandboxes.",
  async run(run) {
    const client = await run.client();
    const ids = await findSandboxes(client, run.rest(0));
    const removed: string[] = [];
    const bytes = { removed_bytes: 0, shared_bytes: 0 };
    const failed: { id: string; error: SandboxerError }[] = [];
    for (const id of new Set(ids)) {
      try {
        const data: RemovedData | undefined = await client.call("destroySandbox", { params: { id } });
        removed.push(id);
        bytes.removed_bytes += data?.removed_bytes ?? 0;
        bytes.shared_bytes += data?.shared_bytes ?? 0;
        if (!run.json) run.io.stdout(`${id}\n`);
      } catch (error) {
        failed.push({ id, error: asSandboxerError(error) });
      }
    }
    const [first, ...others] = failed;
    for (const { id, error } of others) run.say(`sandboxer: ${id}: ${error.message}`);
    if (first !== undefined) {
      const { code, message, hint } = first.error;
      const details = { removed, failed: failed.map(({ id, error }) => ({ id, code: error.code })) };
      throw new SandboxerError(code, message, { hint, details });
    }
    if (run.json) run.print({ removed, ...bytes }, () => "");
    else if (bytes.removed_bytes + bytes.shared_bytes > 0) run.say(formatRemovedBytes(bytes));
  },
});
