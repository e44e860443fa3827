import { SandboxerError } from "@sandboxer/protocol/errors";
import { defineCommand } from "../define-command.ts";
import { addTerminalOptions, execEnvOption, userOption } from "../options/exec.ts";
import { parseDetachKeys } from "../terminal/detach-keys.ts";

/** The best shell that the sandbox has. */
const SHELL = "command -v bash >/dev/null 2>&1 && exec bash -i || exec sh -i";

export const shellCommand = defineCommand({
  arguments: "<sandbox> [command...]",
  commandAfter: 1,
  examples: [
    "sandboxer shell web",
    "sandboxer shell web -- htop",
    "sandboxer shell --detach-keys ctrl-a,d --cwd /srv web",
  ],
  details:
    "Detach with ctrl-p ctrl-q and return with `sandboxer attach`. The shell survives lost connections, server restarts\n" +
    "and handoffs, and continues where it was.",
  options: (command) =>
    addTerminalOptions(command)
      .addOption(execEnvOption())
      .addOption(userOption())
      .option("-w, --cwd <PATH>", "working directory")
      .option("--no-wake", "fail if the sandbox is paused, instead of resuming it"),
  async run(run) {
    if (run.io.terminal === undefined || run.json) {
      throw new SandboxerError("bad_request", "A shell needs a terminal, but stdin or stdout is not one.", {
        hint: "To run a script from stdin, use `sandboxer exec -i SANDBOX -- bash`.",
      });
    }
    const detachKeys = parseDetachKeys(run.text("detachKeys") ?? "");
    const cwd = run.text("cwd");
    const user = run.text("user");
    const { openSandbox } = await import("../process/open-sandbox.ts");
    const { runProcess } = await import("../process/run-process.ts");
    const command = run.rest(1);
    await runProcess(run, await openSandbox(run, run.argument(0)), {
      stdin: true,
      tty: true,
      detachKeys,
      command: command.length === 0 ? SHELL : command,
      env: run.value<Record<string, string>>("env") ?? {},
      ...(cwd === undefined ? {} : { cwd }),
      ...(user === undefined ? {} : { user }),
    });
  },
});
