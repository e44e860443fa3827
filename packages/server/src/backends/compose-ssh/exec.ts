import { randomUUID } from "node:crypto";
import { pipeline, type Readable } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";
import type { ExtensionCommand, ExtensionProcess } from "../extension/extension.ts";
import type { ComposeProject } from "./handle.ts";
import { remoteError } from "./remote-errors.ts";
import { SSH_FAILED, type SshConnection, sshMissing } from "./ssh-connection.ts";
import { runRemote } from "./run-remote.ts";
import { scriptFor, SEND_SIGNAL } from "./scripts.ts";
import { serviceArgv, type ServiceProcess } from "./service-argv.ts";
import { ServiceContainers } from "./service-containers.ts";
import { AfterReport, readReport, sayReport, type StartReport } from "./start-report.ts";
import { untilEnded } from "./until-ended.ts";
import { quoteForShell } from "../../support/shell-quote.ts";

const SIGNAL_BASE = 128;
const MAX_SIGNAL = 64;

/** Reads its commands from the first line of input, so that neither commands nor variables show in a process table. */
const STARTER = `n='
'; IFS= read -r c && eval "$c"`;

/** Docker's messages about a container that was removed or has ended. */
const NO_CONTAINER = /is not running|No such container|no container found/i;

/** Starts a process in the service's container, through `docker exec`. */
export async function execInService(
  connection: SshConnection,
  project: ComposeProject,
  command: ExtensionCommand,
  containers = new ServiceContainers(),
): Promise<ExtensionProcess> {
  const nonce = randomUUID();
  const known = containers.get(project.sandboxId);
  const child = connection.start(serviceArgv(project, STARTER, known));
  const closed = new Promise<number | null>((resolve, reject) => {
    child.once("error", (error) => reject(sshMissing(error)));
    child.once("close", resolve);
  });
  closed.catch(() => {});
  const [stdout, stderr] = [kept(child.stdout, nonce), kept(child.stderr, nonce)];
  child.stdin.on("error", () => {});
  child.stdin.write(`${startLine(command, nonce)}\n`);
  const report = await readReport(stdout, stderr);
  if (report.kind !== "started") {
    child.stdin.end();
    stdout.resume();
    stderr.resume();
    if (known !== undefined && report.kind === "silent" && NO_CONTAINER.test(report.said)) {
      containers.forget(project.sandboxId);
      return execInService(connection, project, command, containers);
    }
    throw notStarted(connection, command, report, await closed);
  }
  const started: ServiceProcess = { project, container: known, pid: report.pid };
  return {
    pid: report.pid,
    stdin: child.stdin,
    stdout,
    stderr,
    exited: closed.then((code) => exitOf(connection, code)),
    signal: (signal, scope) => sendSignal(connection, started, signal, scope),
    untilEnded: (signal) => untilEnded(connection, started, signal),
    abandon: () => {
      child.kill();
      stdout.destroy();
      stderr.destroy();
    },
  };
}

/** When a child exits, Node discards its unread output; from here on the output waits for its reader. */
function kept(stream: Readable, nonce: string): AfterReport {
  const after = new AfterReport(nonce);
  pipeline(stream, after, () => {});
  return after;
}

/** The script that the shell inside evaluates. It reports its pid, which stays the program's, and execs the program. */
function startLine({ argv, env, workingFolder }: ExtensionCommand, nonce: string): string {
  const [program = ""] = argv;
  const say = (what: string): string => sayReport(nonce, what);
  return [
    ...(workingFolder === undefined
      ? []
      : [`cd -- ${quoteOnOneLine(workingFolder)} 2>/dev/null || { ${say("no-folder")}; exit 1; }`]),
    ...Object.entries(env).map(([name, value]) => `export ${checkName(name)}=${quoteOnOneLine(value)}`),
    `command -v -- ${quoteOnOneLine(program)} >/dev/null 2>&1 || { ${say("no-program")}; exit 1; }`,
    `set -- ${argv.map(quoteOnOneLine).join(" ")}; unset n c; ${say("$$")}; exec "$@"`,
  ].join("; ");
}

function checkName(name: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return name;
  throw new SandboxerError("bad_request", `${JSON.stringify(name)} is not a valid variable name.`);
}

function notStarted(
  connection: SshConnection,
  { argv, workingFolder }: ExtensionCommand,
  report: Exclude<StartReport, { kind: "started" }>,
  code: number | null,
): SandboxerError {
  if (report.kind === "no-folder") return new SandboxerError("file_not_found", `There is no folder ${workingFolder}.`);
  if (report.kind === "no-program") return new SandboxerError("file_not_found", `There is no program ${argv[0]}.`);
  if (code === SSH_FAILED || code === null) return connection.failure(report.said);
  if (NO_CONTAINER.test(report.said)) {
    return new SandboxerError("sandbox_failed", `The service is no longer running: ${report.said.trim()}`);
  }
  if (/executable file not found|no such file or directory/i.test(report.said)) {
    return new SandboxerError("not_supported", "Commands need sh, but the image of the service has none.", {
      hint: "Choose another service with placement.service, or an image with a shell.",
    });
  }
  return remoteError(connection.placement, code, report.said);
}

/** Docker reports a signal as 128 plus its number, and so does a program that exits with such a code itself. */
async function exitOf(
  connection: SshConnection,
  code: number | null,
): Promise<{ code: number | undefined; signal: number | undefined }> {
  // 255 may be the program's own exit code if the connection still works.
  if (code === null || (code === SSH_FAILED && !(await connection.stands()))) {
    throw connection.failure("the connection was lost while a command ran; its result is unknown");
  }
  const signal = code - SIGNAL_BASE;
  if (signal > 0 && signal <= MAX_SIGNAL) return { code: undefined, signal };
  return { code, signal: undefined };
}

/**
 * Every process that `docker exec` starts leads its own group. Detached: Docker reports no end in a container while the
 * output of an ended process there is unread, which may be the one that gets the signal.
 */
async function sendSignal(
  connection: SshConnection,
  { project, container = "", pid }: ServiceProcess,
  signal: number,
  scope: "process" | "group",
): Promise<void> {
  const target = scope === "group" ? `-${pid}` : String(pid);
  await runRemote(connection, scriptFor(project, SEND_SIGNAL, { signal: String(signal), target, container }));
}

/** As one line, for a shell that has `n` set to a newline and reads with `read -r`. */
export function quoteOnOneLine(argument: string): string {
  return quoteForShell(argument).replaceAll("\n", `'"$n"'`);
}
