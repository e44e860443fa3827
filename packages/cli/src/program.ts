import { Command, CommanderError } from "commander";
import { SandboxerError } from "@sandboxer/protocol";
import { doctorCommand } from "./commands/doctor.ts";
import { gcCommand } from "./commands/gc.ts";
import { keysCommand } from "./commands/keys.ts";
import { serveCommand } from "./commands/serve.ts";
import { setupCommand } from "./commands/setup.ts";
import { reportError } from "./error-funnel.ts";
import type { Io } from "./io.ts";

/** Runs one command line. The result is the exit code. */
export async function runProgram(argv: readonly string[], io: Io): Promise<number> {
  let exitCode = 0;
  const program = new Command("sandboxer")
    .description("Sandboxes that you can put down and pick up anywhere.")
    .helpCommand(false)
    .showHelpAfterError("(run with --help for the flags)");
  const commands = [serveCommand, setupCommand, doctorCommand, gcCommand, keysCommand].map((make) =>
    make(io, (code) => {
      exitCode = code;
    }),
  );
  for (const command of commands) program.addCommand(command);
  for (const command of [program, ...commands]) {
    command.exitOverride().configureOutput({ writeOut: io.stdout, writeErr: () => {} });
  }
  try {
    await program.parseAsync(argv, { from: "user" });
    return exitCode;
  } catch (thrown) {
    if (thrown instanceof CommanderError && thrown.exitCode === 0) return 0;
    return reportError(thrown instanceof CommanderError ? asUsageError(thrown, program) : thrown, argv, io);
  }
}

function asUsageError(thrown: CommanderError, program: Command): SandboxerError {
  if (thrown.code === "commander.help") {
    const verbs = program.commands.map((command) => command.name()).join(", ");
    return new SandboxerError("bad_request", `A command is missing: ${verbs}.`, { hint: "Run `sandboxer --help`." });
  }
  const message = thrown.message.replace(/^error: /, "");
  return new SandboxerError("bad_request", message, {
    hint: "Run `sandboxer --help`, or the command with --help.",
    cause: thrown,
  });
}
