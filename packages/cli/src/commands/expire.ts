import { SandboxerError } from "@sandboxer/protocol/errors";
import { defineCommand } from "../define-command.ts";
import { painter } from "../output/colour.ts";
import { formatSandboxes } from "../output/sandboxes.ts";

export const expireCommand = defineCommand({
  examples: ["sandboxer expire", "sandboxer expire --apply", "sandboxer expire --json | jq -r '.items[].id'"],
  options: (command) => command.option("--apply", "delete them; without this flag nothing changes"),
  async run(run) {
    const client = await run.client();
    const expiry = await client.call("expireSandboxes", { query: { apply: run.flag("apply") } });
    run.print(expiry, ({ items }) => (items.length === 0 ? "" : formatSandboxes(items, painter(run.io))));
    if (expiry.items.length === 0) run.say("No sandbox has expired.");
    else if (!expiry.applied)
      run.say("Nothing was changed. Run the command again with --apply to delete these sandboxes.");
    for (const { id, message } of expiry.failed) run.say(`sandboxer: ${id}: ${message}`);
    if (expiry.failed.length > 0 && !run.json) {
      throw new SandboxerError("sandbox_failed", `${expiry.failed.length} could not be deleted.`, {
        hint: "Run the command again to retry the ones that remain.",
      });
    }
  },
});
