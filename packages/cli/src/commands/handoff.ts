import { defineCommand } from "../define-command.ts";
import { operate } from "../operate.ts";
import { nameOf } from "../output/sandboxes.ts";
import { formatMs } from "../output/time.ts";
import { sandboxId } from "../targets/sandbox.ts";

export const handoffCommand = defineCommand({
  arguments: "<sandbox>",
  examples: [
    "sandboxer handoff web --to http://10.0.0.2:8080",
    "sandboxer handoff web --to \"$(sandboxer instances --json | jq -r '.items[1].id')\"",
    "sandboxer handoff web --to http://10.0.0.2:8080 --json | jq .paused_ms",
  ],
  details: "Running processes move with the sandbox. You can send the request to any server of the store.",
  options: (command) => command.requiredOption("--to <URL>", "URL or id of the target server"),
  async run(run) {
    const id = await sandboxId(await run.client(), run.argument(0));
    const moved = await operate(run, "handoffSandbox", { params: { id }, body: { to: run.text("to") ?? "" } });
    run.print(moved, ({ sandbox }) => `${sandbox.id}\n`);
    run.say(
      `${nameOf(moved.sandbox)} runs on ${moved.to}; it was paused for ${formatMs(moved.paused_ms ?? moved.elapsed_ms)}.`,
    );
  },
});
