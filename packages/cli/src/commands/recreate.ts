import { defineCommand } from "../define-command.ts";
import { operate } from "../operate.ts";
import { nameOf } from "../output/sandboxes.ts";
import { sandboxId } from "../targets/sandbox.ts";

export const recreateCommand = defineCommand({
  arguments: "<sandbox>",
  examples: [
    "sandboxer recreate web",
    "sandboxer snapshot web --name last && sandboxer recreate web",
    "sandboxer recreate web --json | jq .epoch",
  ],
  async run(run) {
    const id = await sandboxId(await run.client(), run.argument(0));
    const made = await operate(run, "recreateSandbox", { params: { id } });
    run.print(made, (record) => `${record.id}\n`);
    run.say(`${nameOf(made)} was created again.`);
  },
});
