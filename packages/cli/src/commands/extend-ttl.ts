import { Option } from "commander";
import type { OnExpiry } from "@sandboxer/protocol";
import { defineCommand } from "../define-command.ts";
import { duration } from "../options/parse.ts";
import { defined, onExpiryOption } from "../options/sandbox.ts";
import { nameOf } from "../output/sandboxes.ts";
import { formatAge } from "../output/time.ts";
import { sandboxId } from "../targets/sandbox.ts";

export const extendTtlCommand = defineCommand({
  arguments: "<sandbox>",
  examples: [
    "sandboxer extend-ttl web --duration 1h",
    "sandboxer extend-ttl 3f2a9c01 --duration 7d",
    "sandboxer extend-ttl web --duration 30m --json | jq -r .expires_at",
  ],
  options: (command) =>
    command
      .addOption(
        new Option("-d, --duration <DURATION>", "time from now, such as 90s, 15m, 4h or 7d")
          .argParser(duration)
          .makeOptionMandatory(),
      )
      .addOption(onExpiryOption()),
  async run(run) {
    const client = await run.client();
    const id = await sandboxId(client, run.argument(0));
    const body = {
      duration: run.text("duration") ?? "",
      ...defined({ on_expiry: run.value<OnExpiry>("onExpiry") }),
    };
    const extended = await client.call("extendTtl", { params: { id }, body });
    run.print(extended, ({ expires_at }) => `${expires_at ?? "never"}\n`);
    const { expires_at: at, on_expiry } = extended;
    run.say(
      at === null
        ? `${nameOf(extended)} never expires.`
        : `${nameOf(extended)} expires ${formatAge(at)}, then: ${on_expiry}.`,
    );
  },
});
