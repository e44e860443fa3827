import type { Sandbox, SandboxProcess } from "@sandboxer/client";
import { relay, type RelayEnd } from "./relay.ts";
import { exitCodeOf } from "./exit-code.ts";
import type { Run } from "../run.ts";

/** The program to run, and its connection to ours. */
export interface ExecPlan {
  readonly command:
    | string
    | readonly string[]
    | { readonly language: "python" | "bash" | "javascript"; readonly code: string };
  readonly stdin: boolean;
  readonly tty: boolean;
  readonly detachKeys: Uint8Array;
  readonly cwd?: string;
  readonly user?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
}

const DEFAULT_SIZE = { rows: 24, columns: 80 } as const;

export async function startProcess(
  run: Run,
  sandbox: Sandbox,
  plan: ExecPlan,
  detach: boolean,
): Promise<SandboxProcess> {
  const { command, stdin, tty, cwd, user, env, timeoutMs } = plan;
  const term = run.io.env["TERM"];
  return sandbox.spawn(command, {
    cwd,
    user,
    timeoutMs,
    detach,
    env: { ...(tty && term ? { TERM: term } : {}), ...env },
    ...(tty ? { pty: run.io.terminal?.size() ?? DEFAULT_SIZE } : {}),
    // Without -i there is no input: stdin must not stay open forever.
    ...(stdin || detach || tty ? {} : { stdin: "" }),
  });
}

/** Runs it to its end, or until the user detaches. Returns its exit code. */
export async function runProcess(run: Run, sandbox: Sandbox, plan: ExecPlan): Promise<void> {
  const process = await startProcess(run, sandbox, plan, false);
  if (run.json) return collectProcess(run, process, plan);
  await follow(run, sandbox, process, plan);
}

/** Attaches our terminal to an existing process. */
export async function follow(
  run: Run,
  sandbox: Sandbox,
  process: SandboxProcess,
  plan: Pick<ExecPlan, "stdin" | "tty" | "detachKeys"> & { readonly closeStdin?: boolean },
): Promise<void> {
  const terminal = plan.tty && plan.stdin ? run.io.terminal : undefined;
  const { stdin, detachKeys, closeStdin = true } = plan;
  const end: RelayEnd = await relay(run.io, process, { stdin, closeStdin, terminal, detachKeys });
  if (end === undefined) {
    const name = sandbox.record.name ?? sandbox.id;
    run.say(`\r\nDetached. Attach again with: sandboxer attach ${name} ${process.id}`);
    return;
  }
  if (process.exit?.timedOut === true) run.say("sandboxer: the command timed out (--timeout).");
  if (process.exit?.hint != null) run.say(`sandboxer: ${process.exit.hint}`);
  run.setExitCode(exitCodeOf(end));
}

async function collectProcess(run: Run, process: SandboxProcess, { stdin }: ExecPlan): Promise<void> {
  if (stdin) {
    void (async () => {
      for await (const bytes of run.io.stdin.bytes()) await process.write(bytes);
      process.closeStdin();
    })().catch(() => {});
  }
  const { processId, exitCode, signal, stdout, stderr, truncated, timedOut, hint } = await process.collect();
  const code = exitCodeOf({ exitCode, signal });
  run.print(
    { process_id: processId, exit_code: exitCode, signal, stdout, stderr, truncated, timed_out: timedOut, hint },
    () => "",
  );
  run.setExitCode(code);
}
