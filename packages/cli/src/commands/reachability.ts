import { defineCommand } from "../define-command.ts";
import { formatFields } from "../output/table.ts";
import { formatMs } from "../output/time.ts";
import { sandboxId } from "../targets/sandbox.ts";

/** As for `doctor`: there is a problem. */
const NOT_REACHABLE = 1;

export const reachabilityCommand = defineCommand({
  arguments: "<sandbox>",
  examples: [
    "sandboxer reachability web",
    "sandboxer reachability web && echo it answers",
    "sandboxer reachability web --json | jq .round_trip_ms",
  ],
  details: "Exits with 0 if the sandbox answers and with 1 if it does not.",
  async run(run) {
    const client = await run.client();
    const id = await sandboxId(client, run.argument(0));
    const found = await client.call("reachability", { params: { id } });
    run.print(found, ({ reachable, state, summary, owner_url, round_trip_ms }) =>
      formatFields({
        reachable: reachable ? "yes" : "no",
        state,
        summary,
        server: owner_url,
        "round trip": round_trip_ms === null ? null : formatMs(round_trip_ms),
      }),
    );
    run.setExitCode(found.reachable ? 0 : NOT_REACHABLE);
  },
});
