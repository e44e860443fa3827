import { Option } from "commander";
import type { DamagedSandbox } from "@sandboxer/protocol";
import { allItems } from "../api/pages.ts";
import { defineCommand } from "../define-command.ts";
import { integer, several } from "../options/parse.ts";
import { SANDBOX_STATES } from "../options/states.ts";
import { defined } from "../options/sandbox.ts";
import { painter } from "../output/colour.ts";
import { formatSandboxes } from "../output/sandboxes.ts";

export const lsCommand = defineCommand({
  examples: [
    "sandboxer ls",
    "sandboxer ls --state running --label team=ml",
    "sandboxer ls --quiet --label temporary | xargs -r sandboxer rm",
  ],
  options: (command) =>
    command
      .addOption(new Option("-s, --state <STATE>", "only those in this state").choices(SANDBOX_STATES))
      .option("-b, --backend <BACKEND>", "only those of this backend")
      .option("-n, --name <NAME>", "only those with this name")
      .option("-k, --key <KEY>", "only those with this key")
      .option("--at-risk", "only those of which more could be lost than was promised")
      .addOption(
        new Option("-l, --label <KEY[=VALUE]>", "only those with this label (several times)").argParser(several),
      )
      .addOption(new Option("--limit <N>", "at most so many").argParser(integer(1, 1_000_000)))
      .option("-q, --quiet", "only the ids, whole, one on a line"),
  async run(run) {
    const filters = defined({
      state: run.text("state"),
      backend: run.text("backend"),
      name: run.text("name"),
      key: run.text("key"),
      at_risk: run.flag("atRisk") ? "true" : undefined,
      label: run.value<string[]>("label"),
    });
    const damaged: DamagedSandbox[] = [];
    // Servers of earlier releases tell of none.
    const takeDamaged = (page: { readonly damaged?: readonly DamagedSandbox[] }): void =>
      void damaged.push(...(page.damaged ?? []));
    const client = await run.client();
    const sandboxes = await allItems(client, "listSandboxes", filters, run.number("limit"), takeDamaged);
    run.print({ items: sandboxes, damaged }, ({ items }) =>
      run.flag("quiet") ? items.map(({ id }) => `${id}\n`).join("") : formatSandboxes(items, painter(run.io), damaged),
    );
    if (sandboxes.length + damaged.length === 0) run.say("There are no such sandboxes. `sandboxer create` makes one.");
    for (const { message, next_step } of damaged) run.say(`${message} ${next_step}`);
  },
});
