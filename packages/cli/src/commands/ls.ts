import { Option } from "commander";
import type { DamagedSandbox } from "@sandboxer/protocol";
import { allItems } from "../api/pages.ts";
import { defineCommand } from "../define-command.ts";
import { integer, several } from "../options/parse.ts";
import { sandboxStateOption } from "../options/states.ts";
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
      .addOption(sandboxStateOption("-s, --state <STATE>", "only in this state"))
      .option("-b, --backend <BACKEND>", "only on this backend")
      .option("-n, --name <NAME>", "only with this name")
      .option("-k, --key <KEY>", "only with this key")
      .option("--at-risk", "only sandboxes whose --max-loss is currently not met")
      .addOption(new Option("-l, --label <KEY[=VALUE]>", "only with this label (repeatable)").argParser(several))
      .addOption(new Option("--limit <N>", "maximum number to list").argParser(integer(1, 1_000_000)))
      .option("-q, --quiet", "print only full ids, one per line"),
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
    // Servers of earlier releases do not report any.
    const takeDamaged = (page: { readonly damaged?: readonly DamagedSandbox[] }): void =>
      void damaged.push(...(page.damaged ?? []));
    const client = await run.client();
    const sandboxes = await allItems(client, "listSandboxes", filters, run.number("limit"), takeDamaged);
    run.print({ items: sandboxes, damaged }, ({ items }) =>
      run.flag("quiet") ? items.map(({ id }) => `${id}\n`).join("") : formatSandboxes(items, painter(run.io), damaged),
    );
    if (sandboxes.length + damaged.length === 0) run.say("No sandboxes found. Create one with `sandboxer create`.");
    for (const { message, next_step } of damaged) run.say(`${message} ${next_step}`);
  },
});
