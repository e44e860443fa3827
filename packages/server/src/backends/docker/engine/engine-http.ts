import { Buffer } from "node:buffer";
import type { Agent, ClientRequest, IncomingMessage } from "node:http";
import { Agent as TlsAgent, request as tlsRequest } from "node:https";
import type { Duplex, Readable } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";
import type { z } from "zod";
import { Agent as PlainAgent, request as plainRequest } from "../../../support/node-http.ts";
import type { EngineAddress } from "./address.ts";
import { refused, unexpected, unreachable } from "./engine-errors.ts";

/** Larger than any answer that is not a stream. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const DEFAULT_TIMEOUT_MS = 60_000;

export interface EngineCall {
  /** Completes "Docker could not …". */
  readonly what: string;
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly json?: unknown;
  /** A body with that type. */
  readonly upload?: { readonly type: string; readonly content: Readable | Uint8Array };
  /** Statuses that are not errors although they are not 2xx. */
  readonly accepted?: readonly number[];
  readonly signal?: AbortSignal | undefined;
  /** Until the response begins; 0: no limit. */
  readonly timeoutMs?: number;
}

/** HTTP to a Docker engine: complete responses, streams, or upgraded connections. */
export class EngineHttp {
  readonly #address: EngineAddress;
  readonly #agent: Agent;
  readonly #secure: boolean;

  constructor(address: EngineAddress) {
    this.#address = address;
    this.#secure = "protocol" in address.connection && address.connection.protocol === "https:";
    this.#agent = this.#secure ? new TlsAgent({ keepAlive: true }) : new PlainAgent({ keepAlive: true });
  }

  close(): void {
    this.#agent.destroy();
  }

  /** The answer, checked. */
  async json<Schema extends z.ZodType>(call: EngineCall, schema: Schema): Promise<z.output<Schema>> {
    const text = await this.text(call);
    try {
      return schema.parse(JSON.parse(text));
    } catch (error) {
      throw unexpected(call.what, error);
    }
  }

  async text(call: EngineCall): Promise<string> {
    const answer = await this.stream(call);
    return this.#read(call, answer);
  }

  /** The status and the headers of a response whose body does not matter. */
  async status(call: EngineCall): Promise<IncomingMessage> {
    const answer = await this.stream(call);
    await this.#read(call, answer);
    return answer;
  }

  /** The response once its headers have arrived; the caller reads the body. */
  async stream(call: EngineCall): Promise<IncomingMessage> {
    const answer = await this.#send(call);
    const status = answer.statusCode ?? 0;
    if ((status >= 200 && status < 300) || call.accepted?.includes(status) === true) return answer;
    throw refused(call.what, status, await this.#read(call, answer));
  }

  /** An upgraded connection with raw bytes in both directions. */
  hijack(call: EngineCall): Promise<{ readonly socket: Duplex; readonly head: Buffer }> {
    return new Promise((resolve, reject) => {
      const request = this.#request(call, { Connection: "Upgrade", Upgrade: "tcp" }, false);
      request.once("upgrade", (_answer, socket, head) => resolve({ socket, head }));
      request.once("response", (answer) => {
        this.#read(call, answer).then((body) => reject(refused(call.what, answer.statusCode ?? 0, body)), reject);
      });
      request.once("error", (error) => reject(this.#reason(call, error)));
      request.end();
    });
  }

  #send(call: EngineCall): Promise<IncomingMessage> {
    const { timeoutMs = DEFAULT_TIMEOUT_MS, upload, json } = call;
    return new Promise((resolve, reject) => {
      const headers: Record<string, string | number> = {};
      let body: Uint8Array | Readable | undefined;
      if (json !== undefined) {
        body = Buffer.from(JSON.stringify(json));
        headers["Content-Type"] = "application/json";
      } else if (upload !== undefined) {
        body = upload.content;
        headers["Content-Type"] = upload.type;
      }
      if (body instanceof Uint8Array) headers["Content-Length"] = body.length;
      const request = this.#request(call, headers, true);
      const late = new SandboxerError("backend_unavailable", `Docker did not ${call.what} within ${timeoutMs} ms.`);
      const timer = timeoutMs === 0 ? undefined : setTimeout(() => request.destroy(late), timeoutMs);
      request.once("response", (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
      request.once("error", (error) => {
        clearTimeout(timer);
        if (body !== undefined && !(body instanceof Uint8Array)) body.destroy();
        reject(this.#reason(call, error));
      });
      if (body === undefined || body instanceof Uint8Array) {
        request.end(body);
        return;
      }
      body.once("error", (error) => request.destroy(error));
      body.pipe(request);
    });
  }

  #request(call: EngineCall, headers: Record<string, string | number>, reuse: boolean): ClientRequest {
    const { connection } = this.#address;
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) query.set(name, String(value));
    }
    const search = query.size === 0 ? "" : `?${query.toString()}`;
    const send = this.#secure ? tlsRequest : plainRequest;
    return send({
      ...connection,
      method: call.method,
      path: `${call.path}${search}`,
      headers: { Host: "docker", ...headers },
      agent: reuse ? this.#agent : false,
      ...(call.signal === undefined ? {} : { signal: call.signal }),
    });
  }

  async #read(call: EngineCall, answer: IncomingMessage): Promise<string> {
    const chunks: Buffer[] = [];
    let size = 0;
    try {
      for await (const chunk of answer as AsyncIterable<Buffer>) {
        size += chunk.length;
        if (size > MAX_ANSWER_BYTES) throw unexpected(call.what, new Error(`more than ${MAX_ANSWER_BYTES} bytes`));
        chunks.push(chunk);
      }
    } catch (error) {
      throw this.#reason(call, error);
    }
    return Buffer.concat(chunks).toString("utf8");
  }

  #reason(call: EngineCall, error: unknown): unknown {
    if (call.signal?.aborted === true) return call.signal.reason;
    return error instanceof SandboxerError ? error : unreachable(this.#address, error);
  }
}
