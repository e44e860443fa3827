import { allItems } from "../api/pages.ts";
import { defineCommand } from "../define-command.ts";
import { painter } from "../output/colour.ts";
import { formatLineage } from "../output/lineage.ts";
import { pick } from "../targets/match.ts";

export const treeCommand = defineCommand({
  arguments: "[sandbox]",
  examples: ["sandboxer tree", "sandboxer tree web", "sandboxer tree --json | jq '.snapshots[] | {id, parent}'"],
  details:
    "Lists snapshots below the sandbox they were taken from, and sandboxes below the snapshot they were created from.",
  async run(run) {
    const client = await run.client();
    const [sandboxes, snapshots] = await Promise.all([
      allItems(client, "listSandboxes"),
      allItems(client, "listSnapshots"),
    ]);
    const given = run.optionalArgument(0);
    const root =
      given === undefined
        ? undefined
        : pick(given, [...sandboxes, ...snapshots], "sandbox or snapshot", "sandbox_not_found").id;
    run.print({ root: root ?? null, sandboxes, snapshots }, () =>
      formatLineage(sandboxes, snapshots, painter(run.io), root),
    );
  },
});
