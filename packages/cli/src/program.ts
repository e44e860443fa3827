import { Command, CommanderError } from "commander";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { markCommand, markList, takesNext } from "./command-words.ts";
import { reportError } from "./error-funnel.ts";
import type { Io } from "./io.ts";
import { addConnectionOptions } from "./options/connection.ts";
import { findEntry, REGISTRY } from "./registry.ts";
import { version } from "./version.ts";

/** Runs one command line. The result is the exit code. */
export async function runProgram(argv: readonly string[], io: Io): Promise<number> {
  let exitCode = 0;
  // `sandboxer help exec`, as in many other programs.
  const given = argv[0] === "help" ? [...argv.slice(1), "--help"] : argv;
  const { program, words } = await buildProgram(given, io, (code) => {
    exitCode = code;
  });
  let json = beforeDashes(words).includes("--json");
  let ownErrorCode: unknown;
  program.hook("preAction", (_program, command) => {
    json = command.optsWithGlobals()["json"] === true;
    ownErrorCode = command.opts()["errorCode"];
  });
  try {
    await program.parseAsync(words, { from: "user" });
    return exitCode;
  } catch (thrown) {
    if (thrown instanceof CommanderError && thrown.exitCode === 0) return 0;
    const tableCode = reportError(thrown instanceof CommanderError ? asUsageError(thrown) : thrown, json, io);
    return typeof ownErrorCode === "number" ? ownErrorCode : tableCode;
  }
}

/** The program with every name and with the called command, and the words for it. */
export async function buildProgram(
  argv: readonly string[],
  io: Io,
  setExitCode: (code: number) => void,
): Promise<{ readonly program: Command; readonly words: readonly string[] }> {
  const program = new Command("sandboxer")
    .description("Sandboxes that you can pause on one machine and resume on another.")
    .usage("<command> [options]")
    .version(version, "--version", "print the version")
    .helpCommand(false)
    .enablePositionalOptions()
    .configureHelp({ sortOptions: true })
    .addHelpText("after", OVERVIEW_END);
  addConnectionOptions(program).option("--json", "print JSON on stdout, including errors");
  const at = calledAt(program, argv);
  const called = findEntry(argv[at] ?? "");
  let words = argv;
  for (const entry of REGISTRY) {
    const factory = entry === called ? await entry.load() : undefined;
    const command = factory === undefined ? new Command() : factory(io, setExitCode);
    command
      .name(entry.name)
      .description(entry.summary)
      .aliases(entry.aliases ?? [])
      .helpGroup(entry.group);
    if (factory !== undefined) {
      words = [...argv.slice(0, at + 1), ...markCommand(command, markList(command, argv.slice(at + 1)))];
    }
    program.addCommand(command, { hidden: entry.hidden === true });
  }
  for (const command of withDescendants(program)) {
    command
      .exitOverride()
      .configureOutput({ writeOut: io.stdout, writeErr: () => {} })
      .helpCommand(false);
  }
  return { program, words };
}

const OVERVIEW_END = `
Examples:
  $ sandboxer create --name web
  $ sandboxer exec web -- python3 -c 'print(6 * 7)'
  $ sandboxer rm web

Name a sandbox by its name, its id, or a unique prefix of either.
Every command has --help with examples. docs/reference/cli.md has the exit codes.`;

/** The index of the first word that is neither an option nor the value of one. */
function calledAt(program: Command, argv: readonly string[]): number {
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] ?? "";
    if (!word.startsWith("-")) return index;
    if (takesNext(program, word)) index += 1;
  }
  return argv.length;
}

/** Words after `--` belong to the command to run. */
function beforeDashes(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf("--");
  return end === -1 ? argv : argv.slice(0, end);
}

function withDescendants(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withDescendants)];
}

function asUsageError(thrown: CommanderError): SandboxerError {
  if (thrown.code === "commander.help") {
    return new SandboxerError("bad_request", "A command is missing.", {
      hint: "Run with --help to list the commands.",
    });
  }
  const [message = "", ...suggestion] = thrown.message.replace(/^error: /, "").split("\n");
  const meant = suggestion.join(" ").replace(/^\((.*)\)$/, "$1");
  return new SandboxerError("bad_request", `${message}.`.replace(/\.\.$/, "."), {
    hint: meant === "" ? "Run `sandboxer --help`, or the command with --help." : meant,
    cause: thrown,
  });
}
