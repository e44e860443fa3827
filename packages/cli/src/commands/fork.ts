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
  details: "Prints the ids of the new sandboxes, one per line.",
  options: (command) =>
    addRestoreOptions(
      command.addOption(new Option("-c, --count <N>", "number of new sandboxes").argParser(integer(1, 100)).default(1)),
    ),
  async run(run) {
    const id = await sandboxId(await run.client(), run.argument(0));
    const body = { ...readRestoreOptions(run), count: run.number("count") ?? 1 };
    const forked = await operate(run, "forkSandbox", { params: { id }, body });
    run.print(forked, ({ items }) => items.map((item) => `${item.id}\n`).join(""));
    run.say(`Created ${forked.items.length} from snapshot ${forked.snapshot_id}.`);
  },
});
