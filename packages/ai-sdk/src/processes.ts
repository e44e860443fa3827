import type { HarnessV1NetworkSandboxSession } from "@ai-sdk/harness";
import { type Sandbox, SandboxerError, type SandboxProcess } from "@sandboxer/client";

type ProcessVerbs = Pick<HarnessV1NetworkSandboxSession, "run" | "spawn">;
type Spawned = Awaited<ReturnType<ProcessVerbs["spawn"]>>;
type Command = Parameters<ProcessVerbs["run"]>[0];

/** The exit code of a program that a signal ended, as shells report SIGKILL. */
const KILLED = 137;

/** Commands in a sandbox, as lines for its shell. Their stdin is empty. */
export function processVerbs(sandbox: Pick<Sandbox, "exec" | "spawn">): ProcessVerbs {
  return {
    run: async (command) => {
      const { exitCode, stdout, stderr } = await sandbox.exec(command.command, optionsOf(command));
      return { exitCode: exitCode ?? KILLED, stdout, stderr };
    },
    spawn: async (command) => spawned(await sandbox.spawn(command.command, optionsOf(command))),
  };
}

function optionsOf({ workingDirectory, env, abortSignal }: Command) {
  return { cwd: workingDirectory, env, signal: abortSignal, stdin: "" };
}

/**
 * A process with a stream for each kind of output. The output is read even if nobody reads the streams: the end of the
 * process must be noticed.
 */
function spawned(process: SandboxProcess): Spawned {
  const outputs = { stdout: output(), stderr: output() };
  const reading = (async (): Promise<{ exitCode: number }> => {
    try {
      for await (const { stream, data } of process.chunks()) outputs[stream].controller.enqueue(data);
      for (const { controller } of Object.values(outputs)) controller.close();
      return { exitCode: process.exit?.exitCode ?? KILLED };
    } catch (error) {
      for (const { controller } of Object.values(outputs)) controller.error(error);
      throw error;
    }
  })();
  // The caller that waits gets it; nobody has to wait.
  reading.catch(() => {});
  return {
    pid: process.pid,
    stdout: outputs.stdout.stream,
    stderr: outputs.stderr.stream,
    wait: () => reading,
    kill: async () => {
      await process.kill().catch((error: unknown) => {
        if (!(error instanceof SandboxerError)) throw error;
      });
    },
  };
}

function output(): { stream: ReadableStream<Uint8Array>; controller: ReadableStreamDefaultController<Uint8Array> } {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const stream = new ReadableStream<Uint8Array>({ start: (given) => void (controller = given) });
  if (controller === undefined) throw new Error("A stream starts at once.");
  return { stream, controller };
}
