import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { describe, expect, test } from "vitest";
import { buildProgram, runProgram } from "../src/program.ts";
import { REGISTRY } from "../src/registry.ts";
import { fakeIo } from "./support/fake-io.ts";

const GUIDE = readFileSync(new URL("../../../docs/reference/cli-commands.md", import.meta.url), "utf8");

interface Leaf {
  readonly path: string;
  readonly summary: string;
}

async function load(name: string): Promise<Command> {
  const { program } = await buildProgram([name], fakeIo(), () => {});
  const command = program.commands.find((one) => one.name() === name);
  if (command === undefined) throw new Error(`${name} is not there`);
  return command;
}

const loaded = await Promise.all(REGISTRY.map(async ({ name }) => load(name)));
const leaves: Leaf[] = loaded.flatMap((command) => [
  { path: command.name(), summary: command.description() },
  ...command.commands.map((child) => ({ path: `${command.name()} ${child.name()}`, summary: child.description() })),
]);

/** `sandboxer snapshots list`, also under the other names of the command. */
function commandLinesOf(path: string): string[] {
  const [first = "", second] = path.split(" ");
  const command = loaded.find((one) => one.name() === first);
  const named = second === undefined ? command : command?.commands.find((one) => one.name() === second);
  const last = [second ?? first, ...(named?.aliases() ?? [])];
  return last.map((name) => (second === undefined ? `sandboxer ${name}` : `sandboxer ${first} ${name}`));
}

async function helpOf(path: string): Promise<string> {
  const io = fakeIo();
  expect(await runProgram([...path.split(" "), "--help"], io)).toBe(0);
  return io.out();
}

/** Splits a line like a shell, as far as examples need it; only our part of a pipe or a list. */
function wordsOf(line: string): string[][] {
  const words: string[] = [];
  for (const [, single, double, plain] of line.matchAll(/'([^']*)'|"((?:\$\([^)]*\)|[^"])*)"|([^\s'"]+)/g)) {
    words.push(single ?? double ?? plain ?? "");
  }
  const commands: string[][] = [[]];
  for (const word of words) {
    if (["|", "&&", ";", ">", "<"].includes(word)) commands.push([]);
    else commands.at(-1)?.push(word);
  }
  const ours = commands
    // xargs appends names.
    .map((command) => (command[0] === "xargs" ? [...command, "NAME"] : command))
    .map((command) =>
      command.slice(
        Math.max(
          0,
          command.findIndex((word) => /(^|\()sandboxer$/.test(word)),
        ),
      ),
    )
    .filter(([first]) => /(^|\()sandboxer$/.test(first ?? ""));
  return ours.map((command) => command.slice(1).map((word) => word.replace(/\)$/, "")));
}

/** Parses a command line as the program would, without running it. */
async function parse(argv: readonly string[]): Promise<string> {
  const { program, words } = await buildProgram(argv, fakeIo(), () => {});
  let reached = "";
  const disarm = (command: Command): void => {
    if (command.commands.length === 0) command.action(() => void (reached = command.name()));
    command.commands.forEach(disarm);
  };
  disarm(program);
  await program.parseAsync(words, { from: "user" });
  return reached;
}

describe.each(leaves)("$path", ({ path, summary }) => {
  test("has at least three examples of its own, and each is a command line that parses", async () => {
    const help = await helpOf(path);
    const examples = [...help.matchAll(/^ {2}\$ (.*)$/gm)].map(([, line = ""]) => line);
    expect(examples.length).toBeGreaterThanOrEqual(3);
    for (const example of examples) {
      const lines = wordsOf(example);
      expect({ example, count: lines.length }).not.toMatchObject({ count: 0 });
      for (const argv of lines) expect({ example, reached: await parse(argv) }).not.toMatchObject({ reached: "" });
    }
    const own = commandLinesOf(path);
    expect(examples.filter((line) => !own.some((each) => line.includes(each)))).toEqual([]);
  });

  test("has a summary sentence", () => expect(summary).toMatch(/^[A-Z].*\.$/));

  if (path === "__complete") return;
  test("is in docs/reference/cli-commands.md", () => {
    expect(GUIDE).toContain(`sandboxer ${path}`);
  });
});

test("the overview lists every command, and loads none", async () => {
  const io = fakeIo();
  expect(await runProgram(["--help"], io)).toBe(0);
  for (const { name, hidden } of REGISTRY) {
    expect({ name, shown: io.out().includes(`\n  ${name}`) }).toEqual({ name, shown: hidden !== true });
  }
});

test.each([
  [["lss"], /unknown command 'lss'/, /Did you mean ls\?/],
  [["chekpoint", "web"], /unknown command/, /Did you mean checkpoint\?/],
  [["create", "--nmae", "web"], /unknown option '--nmae'/, /Did you mean --name\?/],
  [["snapshots", "lst"], /unknown command 'lst'/, /Did you mean one of list, ls\?/],
])("%j: did you mean", async (argv, message, hint) => {
  const io = fakeIo();
  expect(await runProgram(argv, io)).toBe(2);
  expect(io.out()).toBe("");
  expect(io.err()).toMatch(message);
  expect(io.err()).toMatch(hint);
});

test("help, with or without a command, is --help", async () => {
  const [io, named] = [fakeIo(), fakeIo()];
  expect(await runProgram(["help"], io)).toBe(0);
  expect(io.out()).toContain("Inside a sandbox:");
  expect(await runProgram(["help", "snapshots", "list"], named)).toBe(0);
  expect(named.out()).toContain("sandboxer snapshots list --sandbox web");
});

test("--version prints the version", async () => {
  const io = fakeIo();
  expect(await runProgram(["--version"], io)).toBe(0);
  expect(io.out()).toMatch(/^\d+\.\d+\.\d+\n$/);
});
