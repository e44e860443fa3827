import { defineCommand } from "../define-command.ts";
import { formatSandbox } from "../output/sandboxes.ts";
import { findSandbox } from "../targets/sandbox.ts";

export const getCommand = defineCommand({
  arguments: "<sandbox>",
  examples: ["sandboxer get web", "sandboxer get 3f2a9c01", "sandboxer get web --json | jq -r .state"],
  async run(run) {
    run.print(await findSandbox(await run.client(), run.argument(0)), formatSandbox);
  },
});
