import { Command } from "commander";
import { runsCommandAfter, runsCommandAfterDashes } from "./command-words.ts";
import type { Io } from "./io.ts";
import { addConnectionOptions } from "./options/connection.ts";
import { Run } from "./run.ts";

/** Loaded by the registry: a command for one command line. */
export type CommandFactory = (io: Io, setExitCode: (code: number) => void) => Command;

export type Examples = readonly [string, string, string, ...string[]];

export interface CommandDefinition {
  /** In commander's form: `<sandbox> [process]`. Completion uses the names. */
  readonly arguments?: string;
  /** More than the one line of the registry. */
  readonly details?: string;
  /** Without output; each can be pasted into a shell. */
  readonly examples: Examples;
  readonly options?: (command: Command) => unknown;
  /** After this many arguments begins a command to run, whose options are not ours; `dashes`: after `--`. */
  readonly commandAfter?: number | "dashes";
  /** A command that needs no server. */
  readonly local?: true;
  readonly run: (run: Run) => Promise<void> | void;
}

export const JSON_OPTION = "print JSON on stdout, including errors";

/** One verb. Its name and its line in the overview are in the registry. */
export function defineCommand(definition: CommandDefinition): CommandFactory {
  return (io, setExitCode) => configure(new Command(), definition, io, setExitCode);
}

export type Subcommands = Readonly<
  Record<string, CommandDefinition & { readonly summary: string; readonly aliases?: readonly string[] }>
>;

/** A noun with verbs of its own: `snapshots list`. */
export function defineGroup(examples: Examples, subcommands: Subcommands): CommandFactory {
  return (io, setExitCode) => {
    const group = withExamples(new Command(), examples);
    // They may come before the verb, too.
    if (Object.values(subcommands).some(({ local }) => local !== true)) addConnectionOptions(group);
    group.option("--json", JSON_OPTION);
    for (const [name, definition] of Object.entries(subcommands)) {
      const command = configure(new Command(name), definition, io, setExitCode);
      group.addCommand(command.description(definition.summary).aliases(definition.aliases ?? []));
    }
    return group;
  };
}

/** Puts examples under the help of a command. */
export function withExamples(command: Command, examples: Examples): Command {
  return command.addHelpText("after", `\nExamples:\n${examples.map((line) => `  $ ${line}`).join("\n")}`);
}

function configure(
  command: Command,
  definition: CommandDefinition,
  io: Io,
  setExitCode: (code: number) => void,
): Command {
  if (definition.arguments !== undefined) command.arguments(definition.arguments);
  definition.options?.(command);
  if (definition.local !== true) addConnectionOptions(command);
  command.option("--json", JSON_OPTION);
  if (definition.commandAfter === "dashes") runsCommandAfterDashes(command);
  else if (definition.commandAfter !== undefined) runsCommandAfter(command, definition.commandAfter);
  if (definition.details !== undefined) command.addHelpText("after", `\n${definition.details}`);
  withExamples(command, definition.examples);
  return command.action(async (...given: unknown[]) => {
    const run = new Run(io, command, given.slice(0, -2), setExitCode);
    await definition.run(run);
  });
}
