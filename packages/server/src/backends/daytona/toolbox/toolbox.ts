import type { ExecuteRequest, PtyCreateRequest, PtyResizeRequest } from "@daytona/toolbox-api-client";
import type { z } from "zod";
import type { HttpJson } from "../../../support/http-json.ts";
import { vendorStatus } from "../daytona-errors.ts";
import {
  commandSchema,
  executeSchema,
  metricsSchema,
  ptySchema,
  sessionSchema,
  sessionsSchema,
  startedSchema,
  workFolderSchema,
} from "./schemas.ts";
import { openSocket, type Socket } from "./socket.ts";
import { ToolboxFiles } from "./toolbox-files.ts";

/**
 * The calls of the daemon inside a sandbox. It is on another host than the control plane.
 * https://www.daytona.io/docs/en/tools/api/#daytona-toolbox
 */
export class Toolbox {
  readonly files: ToolboxFiles;
  readonly #http: HttpJson;

  constructor(http: HttpJson) {
    this.#http = http;
    this.files = new ToolboxFiles(http);
  }

  /** Resolves when the daemon answers. */
  workFolder(signal?: AbortSignal): Promise<{ readonly dir: string }> {
    return this.#http.json(workFolderSchema, { method: "GET", path: "/work-dir", signal });
  }

  /** Older daemons have no numbers. */
  async metrics(): Promise<z.output<typeof metricsSchema>> {
    try {
      return await this.#http.json(metricsSchema, { method: "GET", path: "/system/metrics" });
    } catch (thrown) {
      if (vendorStatus(thrown) === 404) return {};
      throw thrown;
    }
  }

  /**
   * Runs a shell line to its end; both streams come as one text. The time limit is in seconds, 0 is none:
   * https://www.daytona.io/docs/en/process-code-execution/
   */
  execute(
    request: ExecuteRequest,
    options: { readonly signal?: AbortSignal | undefined; readonly timeoutMs?: number } = {},
  ): Promise<z.output<typeof executeSchema>> {
    const json = { timeout: 0, ...request };
    return this.#http.json(executeSchema, { method: "POST", path: "/process/execute", json, timeoutMs: 0, ...options });
  }

  /** False if it already existed. https://www.daytona.io/docs/en/process-code-execution/#sessions */
  async createSession(sessionId: string): Promise<boolean> {
    try {
      await this.#http.send({ method: "POST", path: "/process/session", json: { sessionId } });
      return true;
    } catch (thrown) {
      if (vendorStatus(thrown) !== 409) throw thrown;
      return false;
    }
  }

  sessions(): Promise<z.output<typeof sessionsSchema>> {
    return this.#http.json(sessionsSchema, { method: "GET", path: "/process/session" });
  }

  session(sessionId: string): Promise<z.output<typeof sessionSchema>> {
    return this.#http.json(sessionSchema, { method: "GET", path: sessionPath(sessionId) });
  }

  /** Starts a shell line and does not wait for it. Its stdin is kept out of its log. */
  startCommand(sessionId: string, command: string): Promise<{ readonly cmdId: string }> {
    const json = { command, runAsync: true, suppressInputEcho: true };
    return this.#http.json(startedSchema, { method: "POST", path: `${sessionPath(sessionId)}/exec`, json });
  }

  command(sessionId: string, commandId: string): Promise<z.output<typeof commandSchema>> {
    return this.#http.json(commandSchema, { method: "GET", path: commandPath(sessionId, commandId) });
  }

  sendInput(sessionId: string, commandId: string, data: string): Promise<void> {
    return this.#http.send({ method: "POST", path: `${commandPath(sessionId, commandId)}/input`, json: { data } });
  }

  async deleteSession(sessionId: string): Promise<void> {
    await this.#http.send({ method: "DELETE", path: sessionPath(sessionId) });
  }

  /**
   * The log from its beginning, then live. Without the header the daemon filters its stream markers out, byte by byte,
   * and can repeat some: https://www.daytona.io/docs/en/log-streaming/
   */
  async followLog(sessionId: string, commandId: string): Promise<Socket> {
    const url = this.#http.urlOf(`${commandPath(sessionId, commandId)}/logs`, { follow: true });
    return openSocket(url, { ...(await this.#http.headers()), "x-daytona-split-output": "true" });
  }

  /** A shell on a terminal: https://www.daytona.io/docs/en/pty/ */
  createTerminal(json: PtyCreateRequest): Promise<{ readonly sessionId: string }> {
    return this.#http.json(ptySchema, { method: "POST", path: "/process/pty", json });
  }

  async connectTerminal(sessionId: string): Promise<Socket> {
    const url = this.#http.urlOf(`${terminalPath(sessionId)}/connect`);
    return openSocket(url, await this.#http.headers(), ["X-Daytona-Pty-Exit-Control"]);
  }

  resizeTerminal(sessionId: string, json: PtyResizeRequest): Promise<void> {
    return this.#http.send({ method: "POST", path: `${terminalPath(sessionId)}/resize`, json, idempotent: true });
  }

  deleteTerminal(sessionId: string): Promise<void> {
    return this.#http.send({ method: "DELETE", path: terminalPath(sessionId) });
  }
}

function sessionPath(sessionId: string): string {
  return `/process/session/${encodeURIComponent(sessionId)}`;
}

function commandPath(sessionId: string, commandId: string): string {
  return `${sessionPath(sessionId)}/command/${encodeURIComponent(commandId)}`;
}

function terminalPath(sessionId: string): string {
  return `/process/pty/${encodeURIComponent(sessionId)}`;
}
