import { defineCommand } from "../define-command.ts";
import { makeSandbox } from "../make-sandbox.ts";
import { addExecOptions, readExecOptions } from "../options/exec.ts";
import { addCreateOptions } from "../options/sandbox.ts";
import { INTERRUPTED } from "../stop-signals.ts";

export const runCommand = defineCommand({
  arguments: "[command...]",
  commandAfter: 0,
  examples: [
    "sandboxer run -- python3 -c 'print(6 * 7)'",
    "sandboxer run -it --image docker:debian -- bash",
    "sandboxer run --key build --keep -- make test",
  ],
  details:
    "Deletes the sandbox when the command ends, even if it fails. --keep and --key keep it; the next run with the same\n" +
    "--key uses the same sandbox. Exit codes are those of `sandboxer exec`.",
  options: (command) => addCreateOptions(addExecOptions(command)).option("--keep", "keep the sandbox"),
  async run(run) {
    const plan = await readExecOptions(run, run.rest(0));
    const keep = run.flag("keep") || run.text("key") !== undefined;
    const client = await run.client();
    // Giving up during the creation must not leave a sandbox behind.
    let interrupted = false;
    const stopListening = run.io.onStopSignal(() => (interrupted = true));
    const created = await makeSandbox(run).finally(stopListening);
    try {
      if (interrupted) return run.setExitCode(INTERRUPTED);
      const { sandboxHandle } = await import("../process/open-sandbox.ts");
      const { runProcess } = await import("../process/run-process.ts");
      await runProcess(run, await sandboxHandle(run, created.id), plan);
    } finally {
      if (keep) run.say(`sandboxer: kept ${created.name ?? created.id}.`);
      else await client.call("destroySandbox", { params: { id: created.id } });
    }
  },
});
