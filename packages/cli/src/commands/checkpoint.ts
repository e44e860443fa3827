import { defineCommand } from "../define-command.ts";
import { operate } from "../operate.ts";
import { formatBytes } from "../output/bytes.ts";
import { nameOf } from "../output/sandboxes.ts";
import { sandboxId } from "../targets/sandbox.ts";

export const checkpointCommand = defineCommand({
  arguments: "<sandbox>",
  examples: [
    "sandboxer checkpoint web",
    "sandboxer checkpoint web && sandboxer attach web --url http://10.0.0.2:8080",
    "sandboxer checkpoint web --leave-running",
    "sandboxer checkpoint web --json | jq .checkpoint.size_bytes",
  ],
  details:
    "Saves files, memory and running programs. Resume the sandbox with `sandboxer attach`, on any server of the store.\n" +
    "With --leave-running it keeps running; the checkpoint is used if its server dies (--max-loss does this regularly).",
  options: (command) => command.option("--leave-running", "save the sandbox but keep it running"),
  async run(run) {
    const id = await sandboxId(await run.client(), run.argument(0));
    const goesOn = run.flag("leaveRunning");
    const body = goesOn ? { body: { leave_running: true } } : {};
    const saved = await operate(run, "checkpointSandbox", { params: { id }, ...body });
    run.print(saved, (record) => `${record.id}\n`);
    const size =
      saved.checkpoint === null ? "" : ` (${saved.checkpoint.name}, ${formatBytes(saved.checkpoint.size_bytes)})`;
    run.say(`${nameOf(saved)} is saved${size}${goesOn ? " and keeps running" : ""}.`);
  },
});
