import { Option } from "commander";
import type { EventRecord } from "@sandboxer/protocol";
import { eachItem } from "../api/pages.ts";
import { defineCommand } from "../define-command.ts";
import { integer } from "../options/parse.ts";
import { defined } from "../options/sandbox.ts";
import { formatEvent } from "../output/events.ts";
import { sandboxId } from "../targets/sandbox.ts";

export const eventsCommand = defineCommand({
  arguments: "[sandbox]",
  examples: [
    "sandboxer events -f",
    "sandboxer events web --type sandbox.state",
    "sandboxer events -f --json | jq .type",
  ],
  details: "With --json, prints one object per line. Pass the `cursor` of an event to --since to continue after it.",
  options: (command) =>
    command
      .option("-f, --follow", "keep printing new events")
      .option("-t, --type <TYPE>", "only events of this type")
      .option("--since <CURSOR>", "only events after this cursor")
      .addOption(new Option("--limit <N>", "maximum number to list").argParser(integer(1, 1_000_000))),
  async run(run) {
    const client = await run.client();
    const given = run.optionalArgument(0);
    const filters = defined({
      sandbox_id: given === undefined ? undefined : await sandboxId(client, given),
      type: run.text("type"),
    });
    const cursor = run.text("since");
    const limit = run.number("limit") ?? Number.POSITIVE_INFINITY;
    const print = (event: EventRecord): void =>
      run.io.stdout(run.json ? `${JSON.stringify(event)}\n` : formatEvent(event));
    let count = 0;
    let last = cursor;
    for await (const event of eachItem(client, "events", { ...filters, ...defined({ cursor }) }, limit)) {
      print(event);
      count += 1;
      last = event.cursor;
    }
    if (!run.flag("follow") || count >= limit) return;
    const { Sandboxer } = await import("@sandboxer/client");
    const { url, apiKey } = client;
    const sdk = new Sandboxer({ url, ...(apiKey === undefined ? {} : { apiKey }) });
    const { sandbox_id: wanted, type } = filters;
    for await (const { sandboxId: sandbox_id, ...event } of sdk.events({ sandboxId: wanted, type, cursor: last })) {
      print({ ...event, sandbox_id });
      count += 1;
      if (count >= limit) return;
    }
  },
});
