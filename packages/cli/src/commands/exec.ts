import { defineCommand } from "../define-command.ts";
import { addExecOptions, execEnvOption, readExecOptions } from "../options/exec.ts";

export const execCommand = defineCommand({
  arguments: "<sandbox> [command...]",
  commandAfter: 1,
  examples: [
    "sandboxer exec web -- python3 -c 'print(6 * 7)'",
    "sandboxer exec -it web -- bash",
    "tar c . | sandboxer exec -i web -- tar x -C /tmp",
  ],
  details:
    "Exits with the command's exit code, or 128 and the number of the signal that ended it. Failures of sandboxer\n" +
    "itself exit with the codes of docs/reference/cli.md, after a line on stderr that begins with `sandboxer:`; --error-code\n" +
    "gives them one code of your choice, so that they cannot be taken for the command's own.",
  options: (command) =>
    addExecOptions(command)
      .addOption(execEnvOption())
      .option("-d, --detach", "print the id of the process and leave it running")
      .option("--no-wake", "do not wake a sandbox that sleeps"),
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
