import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import type { SandboxerError } from "@sandboxer/protocol";
import { remoteError } from "./remote-errors.ts";
import { SSH_FAILED, type SshConnection, sshMissing } from "./ssh-connection.ts";

const MAX_BYTES = 256 << 10;

export interface RemoteOptions {
  readonly signal?: AbortSignal;
  /** Its standard input; without one, the end of input ends the script. */
  readonly input?: AsyncIterable<Uint8Array>;
  /** Receives the standard output, which is collected otherwise. */
  readonly output?: (data: AsyncIterable<Uint8Array>) => Promise<void>;
}

/** Runs a script on the host to its end, and returns its output. */
export async function runRemote(
  connection: SshConnection,
  script: string,
  options: RemoteOptions = {},
): Promise<string> {
  options.signal?.throwIfAborted();
  const guarded = options.input === undefined;
  const child = connection.start(guarded ? ["sh", "-c", GUARD, "sh", script] : ["sh", "-c", script]);
  const stop = (): void => {
    // The end of its input ends the script there; ssh itself then has nothing to wait for.
    child.stdin.destroy();
    child.kill();
  };
  options.signal?.addEventListener("abort", stop, { once: true });
  try {
    const stdout: string[] = [];
    const stderr = tail(child);
    child.stdin.on("error", () => {});
    const [code] = await Promise.all([
      exitOf(child),
      options.output?.(child.stdout) ?? gather(child, stdout),
      feed(child, options.input),
    ]);
    if (code === 0) return stdout.join("");
    options.signal?.throwIfAborted();
    throw failureOf(connection, code, stderr());
  } catch (thrown) {
    child.kill();
    options.signal?.throwIfAborted();
    throw thrown;
  } finally {
    options.signal?.removeEventListener("abort", stop);
  }
}

function failureOf(connection: SshConnection, code: number | null, stderr: string): SandboxerError {
  if (code === SSH_FAILED || code === null) return connection.failure(stderr);
  return remoteError(connection.placement, code, stderr);
}

async function exitOf(child: ChildProcessWithoutNullStreams): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once("error", (error) => reject(sshMissing(error)));
    child.once("close", resolve);
  });
}

async function gather(child: ChildProcessWithoutNullStreams, into: string[]): Promise<void> {
  let bytes = 0;
  for await (const data of child.stdout as AsyncIterable<Buffer>) {
    bytes += data.length;
    if (bytes <= MAX_BYTES) into.push(data.toString("utf8"));
  }
}

/** A program that ends before it has read everything explains that by its exit code. A guarded one has no input. */
async function feed(
  child: ChildProcessWithoutNullStreams,
  input: AsyncIterable<Uint8Array> | undefined,
): Promise<void> {
  const { stdin } = child;
  if (input === undefined) return;
  for await (const data of input) {
    if (stdin.destroyed || child.exitCode !== null) return;
    if (stdin.write(data)) continue;
    const over = new AbortController();
    const either = [once(stdin, "drain", over), once(child, "exit", over)];
    await Promise.race(either).catch(() => {});
    over.abort();
    await Promise.allSettled(either);
  }
  stdin.end();
}

/** The end of its standard error. */
function tail(child: ChildProcessWithoutNullStreams): () => string {
  let text = "";
  child.stderr.setEncoding("utf8");
  child.stderr.on("data", (data: string) => (text = (text + data).slice(-MAX_BYTES)));
  return () => text;
}

/**
 * Runs the script in its argument as a process group of its own, and ends that group when standard input ends: also
 * when the connection or this server is lost. Nothing on the host is left running. Compose ignores the first signal, so
 * a second one follows. No `--` for kill: not every shell supports it.
 */
const GUARD = `exec 3<&0
setsid sh -c "$1" sh < /dev/null 3<&- & child=$!
{ cat <&3; kill -TERM "-$child"; sleep 2; kill -KILL "-$child"; } > /dev/null 2>&1 & watch=$!
exec 3<&-
wait "$child"; code=$?
kill "$watch" 2> /dev/null
exit "$code"
`;
