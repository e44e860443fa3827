import type { CreatedSandboxRecord, SandboxRecord } from "@sandboxer/protocol";
import type { TestServer } from "../../../../../test/kit/server/test-server.ts";

export interface Answer<Body = unknown> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

export interface RequestOptions {
  readonly headers?: Record<string, string>;
}

/** The HTTP interface as any client speaks it: no part of ours in between. */
export class HttpClient {
  readonly #url: string;

  constructor(server: Pick<TestServer, "httpUrl">) {
    this.#url = server.httpUrl;
  }

  async call<Body = never>(
    method: string,
    path: string,
    body?: unknown,
    { headers = {} }: RequestOptions = {},
  ): Promise<Answer<Body>> {
    const response = await fetch(this.#url + path, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const parsed = text === "" ? undefined : (JSON.parse(text) as Body);
    return { status: response.status, headers: response.headers, body: parsed as Body };
  }

  async create(body: object = {}): Promise<CreatedSandboxRecord> {
    const answer = await this.call<CreatedSandboxRecord>("POST", "/v1/sandboxes", body);
    if (answer.status !== 201) throw new Error(`create: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  async get(id: string): Promise<SandboxRecord> {
    return (await this.call<SandboxRecord>("GET", `/v1/sandboxes/${id}`)).body;
  }
}

export interface ErrorAnswer {
  readonly error: {
    readonly code: string;
    readonly message: string;
    readonly hint: string;
    readonly retryable: boolean;
    readonly details: Record<string, unknown>;
  };
}
