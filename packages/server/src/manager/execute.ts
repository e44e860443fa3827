import { randomUUID } from "node:crypto";
import { SandboxerError, type Language } from "@sandboxer/protocol";
import type { ManagerContext } from "./context.ts";
import { Execution, EXECUTION_KEY_PREFIX } from "./execution.ts";
import type { LiveSandbox } from "./live-sandbox.ts";
import { Stopwatch } from "./stopwatch.ts";

/** Linux takes at most 128 KiB in one argument; longer code goes through a file. */
const MAX_ARGUMENT_BYTES = 96 * 1024;

interface Interpreter {
  readonly command: (code: string) => string[];
  /** Code that runs a file as if its text had been given on the command line. */
  readonly loader: (path: string) => string;
}

const INTERPRETERS: Readonly<Record<Language, Interpreter>> = {
  python: {
    command: (code) => ["python3", "-u", "-c", code],
    loader: (path) => `exec(compile(open(${JSON.stringify(path)}, encoding="utf-8").read(), "<string>", "exec"))`,
  },
  bash: {
    command: (code) => ["bash", "-c", code],
    loader: (path) => `. ${path}`,
  },
  javascript: {
    command: (code) => ["node", "-e", code],
    loader: (path) => `require("vm").runInThisContext(require("fs").readFileSync(${JSON.stringify(path)}, "utf8"))`,
  },
};

/** Starts code as a process of its own. One at a time; what the last one left unread is dropped. */
export function startExecution(
  context: ManagerContext,
  sandbox: LiveSandbox,
  language: Language,
  code: string,
): Promise<Execution> {
  return sandbox.queue.run(async () => {
    if (sandbox.state !== "running") throw new SandboxerError("wrong_state", `The sandbox is ${sandbox.state}.`);
    if (sandbox.executing) throw new SandboxerError("execution_in_progress", "An execution is already in progress.");
    await sandbox.execution?.release().catch(() => {});
    sandbox.execution = undefined;
    const execution = await start(context, sandbox, INTERPRETERS[language], code);
    sandbox.execution = execution;
    return execution;
  });
}

async function start(
  context: ManagerContext,
  sandbox: LiveSandbox,
  interpreter: Interpreter,
  code: string,
): Promise<Execution> {
  const stopwatch = new Stopwatch(context.options.clock);
  const id = randomUUID();
  const { handle } = sandbox;
  const bytes = Buffer.from(code, "utf8");
  const codePath = bytes.length > MAX_ARGUMENT_BYTES ? `/tmp/.sandboxer-${id}` : undefined;
  if (codePath !== undefined) await handle.files.write(codePath, bytes, { mode: 0o600 });
  const argv = interpreter.command(codePath === undefined ? code : interpreter.loader(codePath));
  const execution = new Execution(await handle.exec({ key: EXECUTION_KEY_PREFIX + id, argv }));
  const onExit = (outcome: "ok" | "error"): void => {
    sandbox.touch(context.nowMs);
    const { elapsedMs } = stopwatch;
    const { id: sandboxId, facts } = sandbox;
    context.options.observer.operation({ operation: "execute", sandboxId, backend: facts.backend, elapsedMs, outcome });
    if (codePath !== undefined) handle.files.remove(codePath).catch(() => {});
  };
  execution.exited.then(
    () => onExit("ok"),
    () => onExit("error"),
  );
  return execution;
}
