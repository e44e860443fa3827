import { randomUUID } from "node:crypto";
import type {
  CreateSessionRequest,
  ExecuteRequest,
  ExecuteResponse,
  PtyCreateRequest,
  PtyResizeRequest,
  SessionExecuteRequest,
  SessionSendInputRequest,
  SystemMetrics,
} from "@daytona/toolbox-api-client";
import { SandboxerError } from "@sandboxer/protocol";
import type { SandboxHandle } from "../../../../src/backends/backend.ts";
import { type Answer, jsonOf, Refusal, type SeenRequest } from "./exchange.ts";
import type { Sessions } from "./sessions.ts";
import { splitLog } from "./session-log.ts";
import type { Terminals } from "./terminals.ts";
import { handleFiles } from "./toolbox-files-routes.ts";
import type { VendorSandboxRecord } from "./vendor-sandbox.ts";

const STATUS_OF: Readonly<Record<string, readonly [status: number, says: string, code?: string]>> = {
  file_not_found: [404, "no such file or directory", "FILE_NOT_FOUND"],
  permission_denied: [403, "permission denied", "FILE_ACCESS_DENIED"],
};

/** The daemon of one sandbox: `path` is the part after `/toolbox/{id}`. */
export async function handleToolbox(sandbox: VendorSandboxRecord, request: SeenRequest, path: string): Promise<Answer> {
  const { handle, sessions, terminals } = sandbox;
  if (sessions === undefined || terminals === undefined) throw new Refusal(502, "the daemon does not answer");
  try {
    const answer =
      (await handleFiles(handle.files, request, path)) ??
      (await handleInfo(handle, request, path)) ??
      (await handleSessions(sessions, request, path)) ??
      (await handleTerminals(terminals, request, path));
    if (answer === undefined) throw new Refusal(404, "404 page not found", "NOT_FOUND");
    return answer;
  } catch (thrown) {
    if (!(thrown instanceof SandboxerError)) throw thrown;
    const [status, says, code] = STATUS_OF[thrown.code] ?? [400, thrown.message];
    throw new Refusal(status, `${path}: ${says}`, code);
  }
}

async function handleInfo(handle: SandboxHandle, request: SeenRequest, path: string): Promise<Answer | undefined> {
  switch (`${request.method} ${path}`) {
    case "GET /work-dir":
      return { status: 200, json: { dir: "/workspace" } };
    case "GET /system/metrics": {
      const { memoryBytes, diskBytes } = await handle.stats();
      const metrics: SystemMetrics = { memUsed: memoryBytes, diskUsed: diskBytes, cpuCount: 1 };
      return { status: 200, json: metrics };
    }
    case "POST /process/execute":
      return { status: 200, json: await execute(handle, jsonOf(request) as ExecuteRequest) };
    default:
      return undefined;
  }
}

/** Both streams as one text. */
async function execute(handle: SandboxHandle, { command, cwd, envs }: ExecuteRequest): Promise<ExecuteResponse> {
  const process = await handle.exec({
    key: randomUUID(),
    argv: ["bash", "-c", command],
    ...(cwd === undefined ? {} : { workingFolder: cwd }),
    ...(envs === undefined ? {} : { env: envs }),
  });
  await process.closeStdin().catch(() => {});
  const output: Uint8Array[] = [];
  for await (const { offset, data } of process.output()) {
    output.push(data);
    process.acknowledge(offset + data.length);
  }
  const { code, signal } = await process.exited;
  await process.release();
  return { exitCode: code ?? 128 + (signal ?? 0), result: Buffer.concat(output).toString("utf8") };
}

async function handleSessions(sessions: Sessions, request: SeenRequest, path: string): Promise<Answer | undefined> {
  const match = /^\/process\/session(?:\/([^/]+))?(?:\/command\/([^/]+))?(\/exec|\/input|\/logs)?$/.exec(path);
  if (match === null) return undefined;
  const [sessionId, commandId] = [match[1], match[2]].map((part) => decodeURIComponent(part ?? "")) as [string, string];
  const route = `${request.method} ${sessionId === "" ? "all" : commandId === "" ? "session" : "command"}${match[3] ?? ""}`;
  switch (route) {
    case "POST all":
      sessions.create((jsonOf(request) as CreateSessionRequest).sessionId);
      return { status: 201 };
    case "GET all":
      return { status: 200, json: sessions.list() };
    case "GET session":
      return { status: 200, json: sessions.describe(sessionId) };
    case "DELETE session":
      await sessions.delete(sessionId);
      return { status: 204 };
    case "POST session/exec": {
      const body = jsonOf(request) as SessionExecuteRequest;
      return { status: body.runAsync === true ? 202 : 200, json: await sessions.execute(sessionId, body) };
    }
    case "GET command":
      return { status: 200, json: sessions.command(sessionId, commandId) };
    case "GET command/logs": {
      const log = sessions.log(sessionId, commandId).bytes;
      return { status: 200, json: { output: log.toString("utf8"), ...splitLog(log) } };
    }
    case "POST command/input":
      await sessions.input(sessionId, commandId, (jsonOf(request) as SessionSendInputRequest).data);
      return { status: 204 };
    default:
      return undefined;
  }
}

async function handleTerminals(terminals: Terminals, request: SeenRequest, path: string): Promise<Answer | undefined> {
  const match = /^\/process\/pty(?:\/([^/]+))?(\/resize)?$/.exec(path);
  if (match === null) return undefined;
  const id = decodeURIComponent(match[1] ?? "");
  switch (`${request.method} ${id === "" ? "all" : "one"}${match[2] ?? ""}`) {
    case "POST all":
      return { status: 201, json: { sessionId: await terminals.create(jsonOf(request) as PtyCreateRequest) } };
    case "GET all":
      return { status: 200, json: { sessions: terminals.list() } };
    case "GET one":
      return { status: 200, json: terminals.describe(id) };
    case "DELETE one":
      await terminals.delete(id);
      return { status: 200, json: { message: "PTY session deleted" } };
    case "POST one/resize": {
      const { rows, cols } = jsonOf(request) as PtyResizeRequest;
      return { status: 200, json: await terminals.resize(id, rows, cols) };
    }
    default:
      return undefined;
  }
}
