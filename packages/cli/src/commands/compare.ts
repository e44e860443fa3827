import { Option } from "commander";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { defineCommand } from "../define-command.ts";
import { durationMs, integer } from "../options/parse.ts";
import { painter } from "../output/colour.ts";
import { formatComparison } from "../output/comparison.ts";
import { findSandboxes } from "../targets/sandbox.ts";

const SHOWN_FILES = 20;

export const compareCommand = defineCommand({
  arguments: "<sandbox...>",
  commandAfter: "dashes",
  examples: [
    "sandboxer compare fix-1 fix-2 fix-3",
    "sandboxer compare fix-1 fix-2 fix-3 -- npm test",
    "sandboxer compare fix-1 fix-2 --json -- npm test | jq '.items[] | {name, exit: .run.exit_code}'",
  ],
  details:
    "Files are compared with the snapshot that all of them were forked from; without one, with the first sandbox. The\n" +
    "command after `--` runs in all of them at the same time. Paused sandboxes are resumed. The exit code does not\n" +
    "depend on the command.",
  options: (command) =>
    command
      .option("-c, --shell <LINE>", "run a shell command line instead of a program")
      .option("-w, --cwd <PATH>", "working directory of the command")
      .addOption(new Option("--timeout <DURATION>", "kill the command after this long").argParser(durationMs))
      .addOption(new Option("--files <N>", "number of changed files to show for each").argParser(integer(0, 100_000))),
  async run(run) {
    const ids = [...new Set(await findSandboxes(await run.client(), run.rest(0)))];
    if (ids.length < 2) {
      throw new SandboxerError("bad_request", "Name at least two different sandboxes to compare.");
    }
    const shell = run.text("shell");
    if (shell !== undefined && run.afterDashes.length > 0) {
      throw new SandboxerError("bad_request", "Give either a command after `--`, or --shell.");
    }
    const command = shell ?? (run.afterDashes.length > 0 ? run.afterDashes : undefined);
    const { sandboxHandle } = await import("../process/open-sandbox.ts");
    const { compareSandboxes } = await import("@sandboxer/client");
    const { toWire } = await import("@sandboxer/client/transport");
    const [cwd, timeoutMs, files] = [run.text("cwd"), run.number("timeout"), run.number("files")];
    const exec = { ...(cwd === undefined ? {} : { cwd }), ...(timeoutMs === undefined ? {} : { timeoutMs }) };
    const sandboxes = await Promise.all(ids.map((id) => sandboxHandle(run, id)));
    const comparison = await compareSandboxes(sandboxes, {
      command,
      exec: { ...exec, stdin: "" },
      ...(run.json && files === undefined ? {} : { limit: Math.max(1, files ?? SHOWN_FILES) }),
    });
    run.print(toWire<object>(comparison), () => formatComparison(comparison, painter(run.io), files ?? SHOWN_FILES));
  },
});
