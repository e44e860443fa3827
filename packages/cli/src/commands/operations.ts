import { Option } from "commander";
import { allItems } from "../api/pages.ts";
import { defineCommand } from "../define-command.ts";
import { integer } from "../options/parse.ts";
import { defined } from "../options/sandbox.ts";
import { formatOperation } from "../output/events.ts";
import { shortId } from "../output/sandboxes.ts";
import { formatTable } from "../output/table.ts";
import { sandboxId } from "../targets/sandbox.ts";

export const operationsCommand = defineCommand({
  arguments: "[sandbox]",
  examples: [
    "sandboxer operations --state running",
    "sandboxer operations web --kind checkpoint",
    "sandboxer operations --json | jq '.items[] | {kind, elapsed_ms}'",
  ],
  options: (command) =>
    command
      .option("-k, --kind <KIND>", "only this kind, such as create, checkpoint or restore")
      .addOption(new Option("-s, --state <STATE>", "only in this state").choices(["running", "done", "failed"]))
      .addOption(new Option("--limit <N>", "maximum number to list").argParser(integer(1, 1_000_000)).default(50)),
  async run(run) {
    const client = await run.client();
    const given = run.optionalArgument(0);
    const filters = defined({
      sandbox_id: given === undefined ? undefined : await sandboxId(client, given),
      kind: run.text("kind"),
      state: run.text("state"),
    });
    const operations = await allItems(client, "listOperations", filters, run.number("limit"));
    run.print({ items: operations }, ({ items }) =>
      formatTable([
        ["ID", "STARTED", "SANDBOX", "WHAT"],
        ...items.map((operation) => [
          operation.id,
          operation.started_at,
          operation.sandbox_id === null ? "-" : shortId(operation.sandbox_id),
          formatOperation(operation),
        ]),
      ]),
    );
  },
});
