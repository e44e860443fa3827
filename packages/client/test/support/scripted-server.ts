import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** An answer as JSON; `"hang up"` breaks the connection; a function does anything. */
export type ScriptedAnswer =
  | { readonly status: number; readonly body?: unknown; readonly headers?: Record<string, string> }
  | "hang up"
  | ((response: ServerResponse, request: SeenRequest) => void);

export interface ScriptedServer {
  readonly url: string;
  readonly requests: SeenRequest[];
}

/** Answers requests in the order of a script; the last answer is repeated. For rare answers of a real server. */
export async function scriptedServer(...script: ScriptedAnswer[]): Promise<ScriptedServer> {
  const requests: SeenRequest[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const seen = {
        method: request.method ?? "",
        path: request.url ?? "",
        headers: request.headers,
        body: Buffer.concat(chunks).toString(),
      };
      requests.push(seen);
      const answer = script[Math.min(requests.length, script.length) - 1];
      if (answer === undefined || answer === "hang up") request.socket.destroy();
      else if (typeof answer === "function") answer(response, seen);
      else {
        response.writeHead(answer.status, { "content-type": "application/json", ...answer.headers });
        response.end(answer.body === undefined ? "" : JSON.stringify(answer.body));
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

export function failure(status: number, code: string, details: object = {}): ScriptedAnswer {
  return {
    status,
    body: { error: { code, message: `It is ${code}.`, hint: "Do this.", retryable: status === 503, details } },
  };
}

/** A URL where nothing listens. */
export async function deadUrl(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}
