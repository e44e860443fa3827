import type { Command, Option } from "commander";

const COMMAND_AFTER = new WeakMap<Command, number>();
/** The words after `--`, of a command that takes a list of names before it. */
const AFTER_DASHES = new WeakMap<Command, readonly string[]>();

/** Records that a command to run may follow after `--`. */
export function runsCommandAfterDashes(command: Command): void {
  AFTER_DASHES.set(command, []);
}

export function commandAfterDashes(command: Command): readonly string[] {
  return AFTER_DASHES.get(command) ?? [];
}

/** Records that a command to run begins after this many arguments. */
export function runsCommandAfter(command: Command, operands: number): void {
  COMMAND_AFTER.set(command, operands);
}

/**
 * Inserts `--` before the command to run if it is missing: `exec web -i grep -v x` becomes `exec web -i -- grep -v x`,
 * so that options before it are ours, and those after it belong to the command.
 */
export function markCommand(command: Command, words: readonly string[]): readonly string[] {
  if (AFTER_DASHES.has(command)) {
    const dashes = words.indexOf("--");
    if (dashes === -1) return words;
    AFTER_DASHES.set(command, words.slice(dashes + 1));
    return words.slice(0, dashes);
  }
  const after = COMMAND_AFTER.get(command);
  if (after === undefined) return words;
  let operands = 0;
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? "";
    if (word === "--") return words;
    if (!word.startsWith("-") || word === "-") {
      if (operands === after) return [...words.slice(0, index), "--", ...words.slice(index)];
      operands += 1;
    } else if (takesNext(command, word)) index += 1;
  }
  return words;
}

/** `sandboxer snapshots` alone lists them. */
export function markList(command: Command, words: readonly string[]): readonly string[] {
  const help = words.some((word) => word === "--help" || word === "-h");
  const named = words.some((word, index) => !word.startsWith("-") && !isValue(command, words, index));
  const lists = command.commands.some((child) => child.name() === "list");
  return lists && !named && !help ? ["list", ...words] : words;
}

function isValue(command: Command, words: readonly string[], index: number): boolean {
  const list = command.commands.find((child) => child.name() === "list");
  return list !== undefined && index > 0 && takesNext(list, words[index - 1] ?? "");
}

/** Whether the next word is this option's value. */
export function takesNext(command: Command, word: string): boolean {
  if (word.startsWith("--")) return !word.includes("=") && hasValue(command.options.find(({ long }) => long === word));
  // Short options may be combined; the first with a value takes the rest of the word, or the next word.
  for (let index = 1; index < word.length; index++) {
    if (hasValue(command.options.find(({ short }) => short === `-${word[index]}`))) return index === word.length - 1;
  }
  return false;
}

function hasValue(option: Option | undefined): boolean {
  return option !== undefined && (option.required || option.optional);
}
