import type { Command, Option } from "commander";
import type { Io } from "../../packages/cli/src/io.ts";
import { addConnectionOptions } from "../../packages/cli/src/options/connection.ts";
import { buildProgram, runProgram } from "../../packages/cli/src/program.ts";
import { REGISTRY } from "../../packages/cli/src/registry.ts";

/** Every command of the registry with its usage, options, details and examples: the same text as `--help`. */
export async function cliCommands(): Promise<string> {
  const { Command: Constructor } = await import("commander");
  const common = addConnectionOptions(new Constructor()).options;
  const isCommon = ({ flags }: Option): boolean => flags === "--json" || common.some((one) => one.flags === flags);
  const sections: string[] = [];
  let group = "";
  for (const entry of REGISTRY.filter(({ hidden }) => hidden !== true)) {
    const { program } = await buildProgram([entry.name], silent(), () => {});
    const command = program.commands.find((one) => one.name() === entry.name);
    if (command === undefined) throw new Error(`The program has no command ${entry.name}.`);
    if (entry.group !== group) sections.push(`## ${(group = entry.group).replace(/:$/, "")}`);
    const commands = command.commands.length === 0 ? [command] : command.commands;
    for (const one of commands) sections.push(await section(one, isCommon));
  }
  const shared = ["## Options of every command", optionTable([...common, jsonOption()])];
  return [...shared, ...sections].join("\n\n");
}

async function section(command: Command, isCommon: (option: Option) => boolean): Promise<string> {
  const path = pathOf(command);
  const help = await helpOf(path);
  const [, details = "", examples = ""] =
    /\n\n(?:Options:[\s\S]*?\n\n)([\s\S]*?)\n*Examples:\n([\s\S]*)$/.exec(help) ?? [];
  const aliases = command.aliases().map((alias) => `\`${alias}\``);
  const options = command.options.filter((option) => !isCommon(option) && !option.hidden);
  return [
    `### sandboxer ${path}`,
    command.description() + (aliases.length === 0 ? "" : ` Also: ${aliases.join(", ")}.`),
    `\`\`\`text\nsandboxer ${path} ${command.usage()}\n\`\`\``,
    options.length === 0 ? "" : optionTable(options),
    details.trim() === "" ? "" : `\`\`\`text\n${details.trim()}\n\`\`\``,
    `\`\`\`text\n${examples.trim().replaceAll(/^ {2}/gm, "")}\n\`\`\``,
  ]
    .filter(Boolean)
    .join("\n\n");
}

function pathOf(command: Command): string {
  const { parent } = command;
  return parent?.parent === null || parent === null ? command.name() : `${parent.name()} ${command.name()}`;
}

async function helpOf(path: string): Promise<string> {
  let text = "";
  await runProgram(
    [...path.split(" "), "--help"],
    silent((added) => (text += added)),
  );
  return text;
}

function optionTable(options: readonly Option[]): string {
  const rows = options.map(({ flags, description, defaultValue, defaultValueDescription, argChoices }) => {
    const choices = argChoices === undefined ? "" : ` (${argChoices.join(", ")})`;
    const given = defaultValueDescription ?? (typeof defaultValue === "object" ? undefined : defaultValue);
    const said = given === undefined || given === false ? "" : ` Default: ${String(given)}.`;
    return `| \`${flags.replaceAll("|", "\\|")}\` | ${`${description}${choices}${said === "" ? "" : `.${said}`}`.replaceAll("|", "\\|").replaceAll("<", "&lt;")} |`;
  });
  return ["| option | |", "|---|---|", ...rows].join("\n");
}

function jsonOption(): Option {
  return { flags: "--json", description: "print JSON on stdout, errors included" } as Option;
}

/** An Io for `--help`, which writes to stdout and nothing else. */
function silent(stdout: (text: string) => void = () => {}): Io {
  return { stdout, stderr: () => {}, env: {}, homeDirectory: "/", workingDirectory: "/" } as unknown as Io;
}
