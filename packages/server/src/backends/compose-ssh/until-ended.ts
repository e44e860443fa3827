import { SandboxerError } from "@sandboxer/protocol";
import { serviceArgv, type ServiceProcess } from "./service-argv.ts";
import type { SshConnection } from "./ssh-connection.ts";

/** Rounds of a fifth of a second: a watch whose connection was lost ends by itself. */
const ROUNDS = 300;
/** A watch that prints nothing for this long is started again, whatever the reason. */
const SILENCE_MS = 10_000;

/**
 * Settles when a process in the service has ended; rejects if that is unknown. It is watched from inside, by the
 * watch's output: Docker reports no end in a container while the output of an ended process there is unread. It waits
 * two seconds for that to be read, and then drops some of it, so the answer must come soon.
 */
export async function untilEnded(
  connection: SshConnection,
  process: ServiceProcess,
  signal: AbortSignal,
): Promise<void> {
  while (!(await watch(connection, process, signal))) signal.throwIfAborted();
}

/** False if it outlived the watch. */
async function watch(
  connection: SshConnection,
  { project, container, pid }: ServiceProcess,
  signal: AbortSignal,
): Promise<boolean> {
  signal.throwIfAborted();
  const child = connection.start(serviceArgv(project, watchScript(pid), container));
  child.on("error", () => {});
  child.stdin.on("error", () => {}).end();
  child.stderr.resume();
  const stop = (): void => void child.stdout.destroy();
  const silence = setTimeout(stop, SILENCE_MS).unref();
  signal.addEventListener("abort", stop, { once: true });
  try {
    let said = "";
    for await (const data of child.stdout as AsyncIterable<Buffer>) {
      silence.refresh();
      said = (said + data.toString("latin1")).slice(-"lives\n".length);
      if (said === "ended\n") return true;
      if (said === "lives\n") return false;
    }
    throw new SandboxerError("backend_unavailable", `It is unknown whether process ${pid} has ended.`);
  } finally {
    clearTimeout(silence);
    signal.removeEventListener("abort", stop);
    child.kill();
  }
}

/** A dot shows that the watch is running. A process of another user cannot be signalled, but exists all the same. */
function watchScript(pid: number): string {
  return `i=0; while kill -0 ${pid} 2> /dev/null || [ -d /proc/${pid} ]; do
[ "$i" -lt ${ROUNDS} ] || { echo lives; exit; }
i=$((i + 1)); printf .; sleep 0.2 2> /dev/null || sleep 1
done; echo ended`;
}
