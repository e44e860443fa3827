import { Option } from "commander";
import { defineCommand } from "../define-command.ts";
import { operate } from "../operate.ts";
import { integer } from "../options/parse.ts";
import { addRestoreOptions, readRestoreOptions } from "../options/sandbox.ts";
import { sandboxId } from "../targets/sandbox.ts";

export const forkCommand = defineCommand({
  arguments: "<sandbox>",
  examples: [
    "sandboxer fork web",
    "sandboxer fork web --count 4 --label experiment=a",
    "sandboxer fork web --count 2 --json | jq -r '.items[].id'",
  ],
  details: "The ids of the new sandboxes go to stdout, one on a line.",
  options: (command) =>
    addRestoreOptions(
      command.addOption(new Option("-c, --count <N>", "how many").argParser(integer(1, 100)).default(1)),
    ),
  async run(run) {
    const id = await sandboxId(await run.client(), run.argument(0));
    const body = { ...readRestoreOptions(run), count: run.number("count") ?? 1 };
    const forked = await operate(run, "forkSandbox", { params: { id }, body });
    run.print(forked, ({ items }) => items.map((item) => `${item.id}\n`).join(""));
    run.say(`${forked.items.length} made from snapshot ${forked.snapshot_id}.`);
  },
});
