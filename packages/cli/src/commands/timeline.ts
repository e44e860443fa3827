import { allItems } from "../api/pages.ts";
import { defineCommand } from "../define-command.ts";
import { formatData, formatOperation } from "../output/events.ts";
import { formatTable, visible } from "../output/table.ts";
import { sandboxId } from "../targets/sandbox.ts";

interface Moment {
  readonly time: string;
  readonly what: string;
  readonly details: string;
}

export const timelineCommand = defineCommand({
  arguments: "<sandbox>",
  examples: [
    "sandboxer timeline web",
    "sandboxer timeline 3f2a9c01",
    "sandboxer timeline web --json | jq '.operations'",
  ],
  details: "Shows the events and operations that the server has recorded since it started.",
  async run(run) {
    const client = await run.client();
    const id = await sandboxId(client, run.argument(0));
    const [events, operations] = await Promise.all([
      allItems(client, "events", { sandbox_id: id }),
      allItems(client, "listOperations", { sandbox_id: id }),
    ]);
    const moments: Moment[] = [
      // The operations themselves have more details than their events.
      ...events
        .filter(({ type }) => !type.startsWith("operation"))
        .map(({ time, type, data }) => ({ time, what: type, details: formatData(data) })),
      ...operations.map((operation) => ({
        time: operation.started_at,
        what: "operation",
        details: formatOperation(operation),
      })),
    ].toSorted((a, b) => a.time.localeCompare(b.time));
    run.print({ sandbox_id: id, events, operations }, () =>
      formatTable(moments.map(({ time, what, details }) => [time, visible(what), details])),
    );
    if (moments.length === 0) run.say("The server has recorded no events for this sandbox.");
  },
});
