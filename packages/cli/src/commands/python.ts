import { defineCommand } from "../define-command.ts";

export const pythonCommand = defineCommand({
  arguments: "<sandbox> [file]",
  examples: [
    "sandboxer python web",
    "sandboxer python web -c 'x = 6 * 7; print(x)'",
    "sandboxer python web analysis.py",
    "echo 'print(x)' | sandboxer python web",
  ],
  details:
    "Variables stay in the sandbox: between calls, and when it is paused, forked or moved. At the prompt, Ctrl-C\n" +
    "interrupts the cell and Ctrl-D leaves. Pictures are saved as files. Without a terminal, a file, -c or stdin is\n" +
    "one cell, and the exit code is 1 if it raises an exception.",
  options: (command) =>
    command
      .option("-c, --code <CODE>", "run this code")
      .option("--interpreter <ID>", "use this interpreter instead of the default one")
      .option("--save-to <FOLDER>", "save pictures here (default: the current folder)")
      .option("--no-wake", "fail if the sandbox is paused, instead of resuming it"),
  async run(run) {
    const { openSandbox } = await import("../process/open-sandbox.ts");
    const { cellCode, runCell } = await import("../interpreter/run-cell.ts");
    const code = await cellCode(run, run.optionalArgument(1));
    const context = run.text("interpreter");
    const sandbox = await openSandbox(run, run.argument(0));
    const interpreter = sandbox.interpreter(context === undefined ? {} : { context });
    const folder = run.text("saveTo") ?? run.io.workingDirectory;
    const { terminal } = run.io;
    if (code !== undefined || terminal === undefined) return runCell(run, interpreter, code ?? "", folder);
    const { repl } = await import("../interpreter/repl.ts");
    await repl(run.io, terminal, interpreter, folder);
  },
});
