import { Option, type Command } from "commander";
import { SandboxerError } from "@sandboxer/protocol/errors";
import type { Run } from "../run.ts";
import { DEFAULT_DETACH_KEYS, parseDetachKeys } from "../terminal/detach-keys.ts";
import type { ExecPlan } from "../process/run-process.ts";
import { durationMs, integer, pairOption } from "./parse.ts";

/** For commands that exit with the code of their program. */
export function addExitCodeOption(command: Command): Command {
  return command.addOption(
    new Option("--error-code <N>", "exit code to use when sandboxer itself fails").argParser(integer(1, 255)),
  );
}

export function addTerminalOptions(command: Command): Command {
  return addExitCodeOption(command).option(
    "--detach-keys <KEYS>",
    "keys that detach from the program; empty for none",
    DEFAULT_DETACH_KEYS,
  );
}

/** Options for running a command: shared by exec and run. */
export function addExecOptions(command: Command): Command {
  return addTerminalOptions(
    command
      .option("-i, --interactive", "pass stdin to the command")
      .option("-t, --tty", "run the command in a terminal; with -i, connect yours to it")
      .option("-c, --shell <LINE>", "run a shell command line instead of a program")
      .addOption(new Option("--language <LANGUAGE>", "language of --code").choices(["python", "bash", "javascript"]))
      .option("--code <CODE>", "code to run; `-` reads it from stdin")
      .option("-w, --cwd <PATH>", "working directory")
      .addOption(new Option("--timeout <DURATION>", "kill the command after this long").argParser(durationMs)),
  );
}

/** For commands that start a process in an existing sandbox. `run` has the same option for its new sandbox. */
export const userOption = (): Option => new Option("-u, --user <USER>", "user inside, such as root");

export const execEnvOption = (): Option => pairOption("-e, --env <KEY=VALUE>", "environment variable");

export async function readExecOptions(run: Run, argv: readonly string[]): Promise<ExecPlan> {
  const { io } = run;
  const stdin = run.flag("interactive");
  const tty = run.flag("tty");
  if (tty && stdin && io.terminal === undefined) {
    throw new SandboxerError("bad_request", "-it needs a terminal, but stdin or stdout is not one.", {
      hint: "Omit -t when stdin or stdout is a pipe or a file.",
    });
  }
  if (tty && run.json) throw new SandboxerError("bad_request", "--json and -t cannot be used together.");
  const timeoutMs = run.number("timeout");
  const cwd = run.text("cwd");
  const user = run.text("user");
  return {
    command: await commandOf(run, argv),
    stdin,
    tty,
    detachKeys: parseDetachKeys(run.text("detachKeys") ?? ""),
    ...(cwd === undefined ? {} : { cwd }),
    ...(user === undefined ? {} : { user }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
}

async function commandOf(run: Run, argv: readonly string[]): Promise<ExecPlan["command"]> {
  const shell = run.text("shell");
  const code = run.text("code");
  const language = run.value<"python" | "bash" | "javascript">("language");
  const given = [argv.length > 0, shell !== undefined, code !== undefined].filter(Boolean).length;
  if (given !== 1 || (code === undefined) !== (language === undefined)) {
    throw new SandboxerError("bad_request", "Give a command, --shell, or --language with --code.", {
      hint: "For example: sandboxer exec web -- ls -l /tmp",
    });
  }
  if (shell !== undefined) return shell;
  if (code === undefined || language === undefined) return argv;
  return { language, code: code === "-" ? await readAll(run) : code };
}

async function readAll(run: Run): Promise<string> {
  return Buffer.concat(await Array.fromAsync(run.io.stdin.bytes())).toString("utf8");
}
