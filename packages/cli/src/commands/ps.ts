import { defineCommand } from "../define-command.ts";
import { formatBytes } from "../output/bytes.ts";
import { painter } from "../output/colour.ts";
import { formatProcesses } from "../output/processes.ts";
import { formatTable, visible } from "../output/table.ts";
import { formatMs } from "../output/time.ts";
import { sandboxId } from "../targets/sandbox.ts";

export const psCommand = defineCommand({
  arguments: "<sandbox>",
  examples: ["sandboxer ps web", "sandboxer ps --all web", "sandboxer ps web --json | jq -r '.items[].id'"],
  details: "Lists processes started with exec, run and shell. --all lists every process in the sandbox.",
  options: (command) => command.option("-a, --all", "list every process in the sandbox"),
  async run(run) {
    const client = await run.client();
    const id = await sandboxId(client, run.argument(0));
    if (!run.flag("all")) {
      const processes = await client.call("listProcesses", { params: { id }, query: { saved: true } });
      return run.print(processes, ({ items }) => formatProcesses(items, painter(run.io)));
    }
    const table = await client.call("processTable", { params: { id } });
    run.print(table, ({ items }) =>
      formatTable([
        ["PID", "PARENT", "UID", "STATE", "MEMORY", "CPU", "COMMAND"],
        ...items.map((entry) => [
          String(entry.pid),
          String(entry.parent_pid),
          String(entry.uid),
          visible(entry.state),
          formatBytes(entry.resident_bytes),
          formatMs(entry.cpu_ms),
          visible(entry.command),
        ]),
      ]),
    );
  },
});
