import { defineCommand } from "../define-command.ts";
import { addExecOptions, execEnvOption, readExecOptions, userOption } from "../options/exec.ts";

export const execCommand = defineCommand({
  arguments: "<sandbox> [command...]",
  commandAfter: 1,
  examples: [
    "sandboxer exec web -- python3 -c 'print(6 * 7)'",
    "sandboxer exec -it web -- bash",
    "sandboxer exec --user root web -- apt-get install -y jq",
    "tar c . | sandboxer exec -i web -- tar x -C /tmp",
  ],
  details:
    "Exits with the command's exit code, or with 128 plus the signal number if a signal ended it. If sandboxer itself\n" +
    "fails, it prints a line on stderr that begins with `sandboxer:` and exits with a code of docs/reference/cli.md. Use\n" +
    "--error-code to choose that code, so that you can tell it from the command's own.",
  options: (command) =>
    addExecOptions(command)
      .addOption(execEnvOption())
      .addOption(userOption())
      .option("-d, --detach", "start the process in the background and print its id")
      .option("--no-wake", "fail if the sandbox is paused, instead of resuming it"),
  async run(run) {
    const plan = await readExecOptions(run, run.rest(1));
    const env = run.value<Record<string, string>>("env") ?? {};
    const { openSandbox } = await import("../process/open-sandbox.ts");
    const { runProcess, startProcess } = await import("../process/run-process.ts");
    const sandbox = await openSandbox(run, run.argument(0));
    if (!run.flag("detach")) return runProcess(run, sandbox, { ...plan, env });
    const process = await startProcess(run, sandbox, { ...plan, env }, true);
    run.print({ process_id: process.id, pid: process.pid }, () => `${process.id}\n`);
  },
});
