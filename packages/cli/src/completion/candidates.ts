import type { Command } from "commander";
import { findEntry, REGISTRY } from "../registry.ts";
import type { Io } from "../io.ts";

/** The kind of names for an argument or an option's value. */
export type NameKind = "sandbox" | "snapshot" | "process" | "path" | "profile" | "backend" | "context" | "url";

export interface Wanted {
  /** Words that are known without a request. */
  readonly words: readonly string[];
  /** Names that need a request. */
  readonly kind: NameKind | undefined;
  /** The preceding sandbox on the line, for names that depend on one. */
  readonly sandbox: string | undefined;
}

const NOTHING: Wanted = { words: [], kind: undefined, sandbox: undefined };
const KINDS: Readonly<Record<string, NameKind>> = {
  sandbox: "sandbox",
  snapshot: "snapshot",
  other: "snapshot",
  process: "process",
  path: "path",
  source: "path",
  target: "path",
  profile: "profile",
  backend: "backend",
  context: "context",
  to: "url",
};

/** The candidates after some words; `last` is the incomplete one. */
export async function wantedAfter(words: readonly string[], last: string, io: Io): Promise<Wanted> {
  const [name, ...rest] = words;
  if (name === undefined) return { ...NOTHING, words: commandNames() };
  const entry = findEntry(name);
  if (entry === undefined) return NOTHING;
  let command: Command = (await entry.load())(io, () => {});
  while (command.commands.length > 0) {
    const [sub] = rest;
    if (sub === undefined) return { ...NOTHING, words: [...namesOf(command), ...optionsOf(command, last)] };
    const next = command.commands.find((child) => child.name() === sub || child.aliases().includes(sub));
    if (next === undefined) return NOTHING;
    command = next;
    rest.shift();
  }
  if (rest.includes("--")) return NOTHING;
  return within(command, rest, last);
}

function within(command: Command, before: readonly string[], last: string): Wanted {
  const operands: string[] = [];
  for (let index = 0; index < before.length; index++) {
    const word = before[index] ?? "";
    const option = optionNamed(command, word);
    if (option === undefined) {
      if (!word.startsWith("-")) operands.push(word);
      continue;
    }
    if (!option.required && !option.optional) continue;
    if (index === before.length - 1) {
      const kind = KINDS[option.attributeName()];
      return { words: option.argChoices ?? [], kind, sandbox: undefined };
    }
    index++;
  }
  if (last.startsWith("-")) return { ...NOTHING, words: optionsOf(command, last) };
  const given = command.registeredArguments;
  const argument = given[Math.min(operands.length, given.length - 1)];
  if (argument === undefined || (operands.length >= given.length && !argument.variadic)) return NOTHING;
  return { words: argument.argChoices ?? [], kind: KINDS[argument.name()], sandbox: operands[0] };
}

function optionNamed(command: Command, word: string) {
  return command.options.find(({ long, short }) => word === long || word === short);
}

function optionsOf(command: Command, last: string): string[] {
  if (!last.startsWith("-")) return [];
  return [...command.options.flatMap(({ long }) => long ?? []), "--help"];
}

function namesOf(command: Command): string[] {
  return command.commands.map((child) => child.name());
}

function commandNames(): string[] {
  return REGISTRY.filter(({ hidden }) => hidden !== true).flatMap(({ name, aliases = [] }) => [name, ...aliases]);
}
