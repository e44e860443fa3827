import { randomUUID } from "node:crypto";
import { SandboxerError, type Language } from "@sandboxer/protocol";
import type { SandboxProcess } from "../../backends/backend.ts";
import type { ProcessContext } from "../room-contexts.ts";
import { tellEndOf, type StartedExecution } from "../observing/events/execution-events.ts";
import { INTERPRETERS, needsFile, PLAIN_SHELL, prepareCode, removeCode } from "./interpreters.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { checkNotFrozen } from "../ownership/freeze.ts";
import { checkUser } from "./check-user.ts";
import { hooksFor } from "./hooks.ts";
import type { ManagedProcess } from "./managed-process.ts";
import { executionTraits, processId, processKey, type ProcessTraits } from "./process-key.ts";

/** The agent keeps 256 processes, executions included. */
const MAX_PROCESSES = 200;
/** The capacity of a fresh pipe. */
const PIPE_BYTES = 64 * 1024;
const TERMINAL = { TERM: "xterm-256color" };

export interface StartRequest {
  readonly what:
    | { readonly argv: readonly string[] }
    | { readonly shell: string }
    | { readonly language: Language; readonly code: string };
  readonly env: Readonly<Record<string, string>>;
  readonly workingFolder: string | undefined;
  /** Absent: the sandbox's user. */
  readonly user: string | undefined;
  readonly stdin: Uint8Array | undefined;
  readonly pty: { readonly rows: number; readonly columns: number } | undefined;
  readonly timeoutMs: number | undefined;
  readonly detached: boolean;
  readonly kept: boolean;
  readonly idempotency: { readonly caller: string; readonly key: string; readonly digest: string } | undefined;
  /** Called at once, so that a reader of a detached process is there before any output is dropped. */
  readonly onStart?: (process: ManagedProcess) => void;
}

/**
 * Starts a process, or finds the one that the same request started before, on any server. If the process is neither
 * detached nor kept, its caller waits for it and says when that is over (`waiting`).
 */
export function startProcess(
  context: ProcessContext,
  sandbox: LiveSandbox,
  request: StartRequest,
): Promise<ManagedProcess> {
  // A save must see the process either started or not at all.
  return sandbox.queue.run(async () => {
    sandbox.checkRunning();
    checkNotFrozen(context, sandbox);
    if (request.pty !== undefined && !context.backend(sandbox.facts.backend).capabilities.pty) {
      throw new SandboxerError("not_supported", `The backend ${sandbox.facts.backend} does not support terminals.`);
    }
    checkUser(context.backend(sandbox.facts.backend), request.user);
    const { processes, handle } = sandbox;
    await processes.sync(handle, hooksFor(context, sandbox));
    const id = processId(request.idempotency);
    const known = processes.overHttp.find((process) => process.id === id);
    if (known === undefined) await makeRoom(sandbox);
    const process =
      known === undefined ? await start(context, sandbox, request, traitsOf(request, id)) : repeated(known, request);
    if (!request.detached && !request.kept) process.waiting += 1;
    return process;
  });
}

/** Starts code for the WebSocket protocol. One at a time; unread output of the last one is dropped. */
export function startExecution(
  context: ProcessContext,
  sandbox: LiveSandbox,
  language: Language,
  code: string,
): Promise<ManagedProcess> {
  return sandbox.queue.run(async () => {
    sandbox.checkRunning();
    checkNotFrozen(context, sandbox);
    const { execution } = sandbox.processes;
    // An execution that another server started, and whose output no client requested here, is not the current one.
    if (execution?.running === true && !execution.startedHere && !execution.followed) execution.detach();
    sandbox.processes.checkNotExecuting("An execution is already in progress.");
    await dropExecution(sandbox);
    const traits = executionTraits(randomUUID(), needsFile(code));
    return start(context, sandbox, { what: { language, code } }, traits);
  });
}

export async function dropExecution({ processes }: LiveSandbox): Promise<void> {
  const { execution } = processes;
  if (execution === undefined) return;
  processes.forget(execution);
  await execution.release().catch(() => {});
}

function repeated(known: ManagedProcess, { idempotency }: StartRequest): ManagedProcess {
  if (known.traits.requestDigest === idempotency?.digest) return known;
  throw new SandboxerError("bad_request", "This Idempotency-Key was used for another request.", {
    hint: "Use a fresh key for each request, and the same key only to repeat one.",
  });
}

async function makeRoom({ processes }: LiveSandbox): Promise<void> {
  for (const process of processes.surplus()) {
    processes.forget(process);
    await process.release().catch(() => {});
  }
  if (processes.overHttp.length < MAX_PROCESSES) return;
  throw new SandboxerError(
    "limit_reached",
    `The sandbox has ${MAX_PROCESSES} processes that are running or have unread output.`,
    {
      hint: "Read the output of ended processes, or delete them with DELETE …/processes/{process_id}.",
    },
  );
}

function traitsOf(request: StartRequest, id: string): ProcessTraits {
  const { what, detached, kept, pty, timeoutMs, idempotency } = request;
  const code = "argv" in what ? "" : "shell" in what ? what.shell : what.code;
  return {
    id,
    execution: false,
    detached,
    kept,
    timeoutMs,
    pty: pty !== undefined,
    codeFile: needsFile(code),
    requestDigest: idempotency?.digest,
  };
}

async function start(
  context: ProcessContext,
  sandbox: LiveSandbox,
  { what, env, workingFolder, user, pty, stdin, onStart }: Pick<StartRequest, "what"> & Partial<StartRequest>,
  traits: ProcessTraits,
): Promise<ManagedProcess> {
  const { handle, network, processes } = sandbox;
  const { spec } = sandbox.facts;
  let argv: readonly string[] = [];
  const spawn = (command: readonly string[]): Promise<SandboxProcess> => {
    argv = command;
    return handle.exec({
      key: processKey(traits),
      argv,
      env: { ...network?.environmentBeside(spec.env, env ?? {}), ...(pty === undefined ? {} : TERMINAL), ...env },
      ...(workingFolder === undefined ? {} : { workingFolder }),
      ...(user === undefined ? {} : { user }),
      ...(pty === undefined ? {} : { pty }),
    });
  };
  try {
    const started = await startWhat(sandbox, what, { id: traits.id, forOthers: user !== undefined }, spawn);
    const process = processes.take(started, traits, hooksFor(context, sandbox));
    onStart?.(process);
    process.watch();
    sandbox.unsaved.noteUse(context.nowMs);
    process.command = "argv" in what ? argv : shortened(argv, what);
    process.startedHere = true;
    process.startedAt = new Date(context.options.clock.wallMs()).toISOString();
    tellEndOf(process, context.executions.started(sandbox, startedFacts(what, traits)));
    if (stdin !== undefined) await giveStdin(process, stdin);
    return process;
  } catch (error) {
    if (traits.codeFile) await removeCode(handle, traits.id);
    throw error;
  }
}

async function startWhat(
  { handle }: LiveSandbox,
  what: StartRequest["what"],
  code: { readonly id: string; readonly forOthers: boolean },
  spawn: (argv: readonly string[]) => Promise<SandboxProcess>,
): Promise<SandboxProcess> {
  if ("argv" in what) return spawn(what.argv);
  if ("code" in what) return spawn(await prepareCode(handle, INTERPRETERS[what.language], what.code, code));
  const argv = await prepareCode(handle, INTERPRETERS.bash, what.shell, code);
  return spawn(argv).catch(async (error: unknown) => {
    const missing = error instanceof SandboxerError && error.code === "file_not_found";
    if (!missing) throw error;
    // The working folder may be missing: then this fails as well, and says so.
    return spawn([...PLAIN_SHELL.command(argv.at(-1) ?? "")]);
  });
}

function startedFacts(
  what: StartRequest["what"],
  { id: processId, execution, pty, detached }: ProcessTraits,
): StartedExecution {
  const command = "argv" in what ? what.argv : "shell" in what ? what.shell : what.code;
  const language = "language" in what ? what.language : undefined;
  return { processId, kind: execution ? "execution" : "process", command, language, pty, detached };
}

/** For long code, a list shows the command that runs it. */
function shortened(argv: readonly string[], what: StartRequest["what"]): readonly string[] {
  const code = "shell" in what ? what.shell : "code" in what ? what.code : "";
  return code.length <= 1000 ? argv : [...argv.slice(0, -1), `${code.slice(0, 1000)}…`];
}

/**
 * Input that fits into the pipe is in it before a save can come; more is written while the process reads. A process
 * that has ended or closes its stdin needs no more.
 */
async function giveStdin(process: ManagedProcess, stdin: Uint8Array): Promise<void> {
  const given = (stdin.length === 0 ? Promise.resolve() : process.writeStdin(stdin)).then(() => process.closeStdin());
  const done = given.catch(() => {});
  if (stdin.length <= PIPE_BYTES && !process.traits.pty) await done;
}
