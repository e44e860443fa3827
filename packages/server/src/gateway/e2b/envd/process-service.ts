import type { FastifyInstance, FastifyRequest } from "fastify";
import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { ManagedProcess } from "../../../manager/processes/managed-process.ts";
import { SIGKILL, SIGTERM } from "../../../manager/processes/signals.ts";
import type { StartRequest } from "../../../manager/processes/start-process.ts";
import type { Sandbox } from "../../../manager/sandbox.ts";
import { awaitBody } from "../../http/slow-bodies.ts";
import { ConnectError } from "../connect/connect-error.ts";
import { ConnectService, parsed } from "../connect/connect-routes.ts";
import type { ConnectStream } from "../connect/connect-stream.ts";
import type { E2bServices } from "../e2b-services.ts";
import type { EnvdCalls } from "./envd-calls.ts";
import * as messages from "./messages.ts";
import type { OutputReader } from "./output-fanout.ts";
import { absolutePath } from "./paths.ts";
import { dataEvent, endEvent, KEEP_ALIVE, startEvent } from "./process-events.ts";
import { StartedProcesses } from "./started-processes.ts";

const SIGNALS: Readonly<Record<string, number>> = {
  SIGNAL_SIGKILL: SIGKILL,
  SIGNAL_SIGTERM: SIGTERM,
  [SIGKILL]: SIGKILL,
  [SIGTERM]: SIGTERM,
};
/** The longest time that a process can be limited to; longer is unlimited. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;
const DEFAULT_SIZE = { cols: 80, rows: 24 };
const MAX_SIDE = 0xffff;

/** Programs in a sandbox: `process.Process`. */
export function registerProcessService(app: FastifyInstance, services: E2bServices, calls: EnvdCalls): void {
  const started = new StartedProcesses();
  const service = new ConnectService(app, "process.Process", services.log);

  service.serverStream("Start", messages.startMessage, async ({ request, message }, open) => {
    const { manager } = services;
    const { sandbox, files, user } = await calls.filesOf(request);
    const { process: config, pty, tag } = message;
    if (config == null || config.cmd === "") throw new ConnectError("invalid_argument", "The request has no command.");
    const folder = absolutePath(files.account.home, config.cwd ?? "");
    if (config.cwd != null && config.cwd !== "" && (await files.find(folder))?.kind !== "folder") {
      throw new ConnectError("invalid_argument", `cwd '${config.cwd}' does not exist`);
    }
    let reader: OutputReader | undefined;
    const size = pty == null ? undefined : checkedSize(pty.size ?? DEFAULT_SIZE);
    const start: StartRequest = {
      what: { argv: [config.cmd, ...config.args] },
      env: config.envs,
      workingFolder: folder,
      user,
      // Without stdin a program sees its end at once.
      stdin: message.stdin === false && size === undefined ? new Uint8Array() : undefined,
      pty: size,
      timeoutMs: timeoutOf(request),
      // Output is dropped while nobody reads it.
      detached: true,
      kept: false,
      idempotency: undefined,
      onStart: (process) => (reader = started.fanoutOf(process).attach(0)),
    };
    const process = await manager.processes.start(sandbox, start).catch((error: unknown) => {
      reader?.leave();
      throw startFailure(error);
    });
    started.note(sandbox, process, { config, tag: tag ?? undefined });
    await follow(sandbox, process, reader ?? started.fanoutOf(process).attach(0), open(), request);
  });

  service.serverStream("Connect", messages.selectorMessage, async ({ request, message }, open) => {
    const sandbox = await calls.sandboxOf(request);
    const process = await started.find(services.manager, sandbox, message.process, { ended: true });
    const reader = started.fanoutOf(process).attach(process.exit?.outputEnd ?? process.acknowledged);
    await follow(sandbox, process, reader, open(), request, timeoutOf(request));
  });

  service.unary("List", messages.emptyMessage, async ({ request }) => {
    const sandbox = await calls.sandboxOf(request);
    const running = await started.running(services.manager, sandbox);
    const processes = running.map((process) => {
      const { config, tag } = started.notesOf(sandbox, process);
      const { cwd, ...rest } = config;
      const shown = { ...rest, ...(cwd == null ? {} : { cwd }) };
      return { config: shown, pid: process.pid, ...(tag === undefined ? {} : { tag }) };
    });
    return { processes };
  });

  service.unary("SendInput", messages.inputMessage, async ({ request, message }) => {
    const { process } = await find(request, message.process);
    await sendInput(process, message.input);
    return {};
  });

  service.clientStream("StreamInput", async (request, incoming) => {
    const sandbox = await calls.sandboxOf(request);
    // A person may type into it: it is open as long as the client keeps it alive.
    awaitBody(request.raw);
    const release = services.manager.hold(sandbox, "a writer of stdin");
    try {
      let process: ManagedProcess | undefined;
      for await (const each of incoming) {
        const { start, data } = parsed(messages.inputStreamMessage, each);
        if (start != null) process = await started.find(services.manager, sandbox, start.process);
        else if (process === undefined) throw new ConnectError("invalid_argument", "The stream must begin with start.");
        else if (data != null) await sendInput(process, data.input);
      }
      return {};
    } finally {
      release();
    }
  });

  service.unary("SendSignal", messages.signalMessage, async ({ request, message }) => {
    const number = SIGNALS[String(message.signal ?? "")];
    if (number === undefined) throw new ConnectError("unimplemented", "Only SIGKILL and SIGTERM can be sent.");
    const { process } = await find(request, message.process);
    await process.signal(number, "group");
    return {};
  });

  service.unary("CloseStdin", messages.selectorMessage, async ({ request, message }) => {
    const { process } = await find(request, message.process);
    if (process.traits.pty) throw new ConnectError("failed_precondition", "The input of a terminal cannot be closed.");
    await process.closeStdin();
    return {};
  });

  service.unary("Update", messages.updateMessage, async ({ request, message }) => {
    const { process } = await find(request, message.process);
    if (message.pty?.size == null) return {};
    if (!process.traits.pty) throw new ConnectError("failed_precondition", "The process has no terminal.");
    const { rows, columns } = checkedSize(message.pty.size);
    await process.resize(rows, columns);
    return {};
  });

  const find = async (request: FastifyRequest, selector: messages.Selector | null | undefined) => {
    const sandbox = await calls.sandboxOf(request);
    return { sandbox, process: await started.find(services.manager, sandbox, selector) };
  };

  /** Events until the process has ended, the client has left, or the sandbox is deleted: then the connection is cut. */
  const follow = async (
    sandbox: Sandbox,
    process: ManagedProcess,
    reader: OutputReader,
    stream: ConnectStream,
    request: FastifyRequest,
    limitMs?: number,
  ): Promise<void> => {
    const release = services.manager.hold(sandbox, "a reader of output");
    const signal =
      limitMs === undefined ? stream.closed : AbortSignal.any([stream.closed, AbortSignal.timeout(limitMs)]);
    try {
      stream.keepAlive(KEEP_ALIVE, calls.keepAliveMs(request));
      await stream.send(startEvent(process));
      for (;;) {
        const next = await reader.next(signal);
        if (next === undefined) break;
        if (next === "cut") return stream.cut();
        if (next === "exited") {
          if (process.timedOut) break;
          await stream.send(endEvent(process));
          return stream.end();
        }
        await stream.send(dataEvent(process, next));
      }
      stream.end(new ConnectError("deadline_exceeded", "The time limit of the call was reached."));
    } finally {
      reader.leave();
      release();
    }
  };
}

interface Input {
  readonly stdin?: Buffer | null | undefined;
  readonly pty?: Buffer | null | undefined;
}

async function sendInput(process: ManagedProcess, input: Input | null | undefined): Promise<void> {
  const { stdin, pty } = input ?? {};
  if (pty != null && !process.traits.pty) throw new ConnectError("failed_precondition", "The process has no terminal.");
  if (stdin != null && process.traits.pty) {
    throw new ConnectError("failed_precondition", "The process has a terminal: send the input to it.");
  }
  const data = stdin ?? pty;
  if (data == null || data.length === 0) return;
  await process.writeStdin(data).catch((error: unknown) => {
    if (!(error instanceof SandboxerError) || error.code !== "wrong_state") throw error;
    throw new ConnectError("internal", "The stdin of the process is closed, or the process has ended.", {
      cause: error,
    });
  });
}

function startFailure(thrown: unknown): unknown {
  const error = asSandboxerError(thrown);
  if (error.code !== "file_not_found") return thrown;
  return new ConnectError("invalid_argument", `The program cannot be started: ${error.message}`, { cause: thrown });
}

function checkedSize({ cols, rows }: { readonly cols: number; readonly rows: number }) {
  const side = (given: number, usual: number): number => (given === 0 ? usual : Math.min(given, MAX_SIDE));
  return { rows: side(rows, DEFAULT_SIZE.rows), columns: side(cols, DEFAULT_SIZE.cols) };
}

/** `Connect-Timeout-Ms`; undefined: no limit. */
function timeoutOf({ headers }: FastifyRequest): number | undefined {
  const given = headers["connect-timeout-ms"];
  if (typeof given !== "string" || given === "") return undefined;
  if (!/^\d{1,10}$/.test(given)) throw new ConnectError("invalid_argument", "Connect-Timeout-Ms is not a number.");
  const ms = Number(given);
  return ms === 0 || ms > MAX_TIMEOUT_MS ? undefined : ms;
}
