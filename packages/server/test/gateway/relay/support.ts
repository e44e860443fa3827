import { eventually } from "../../../../../test/kit/eventually.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "../../../../../test/kit/server/test-server.ts";
import { SandboxClient } from "../http/processes/support.ts";

/** The value that earlier clients send; the default is the same. */
export const RELAY = { "sandboxer-relay": "allow" };
export const NEVER = { "sandboxer-relay": "never" };

/** A server learns of others at its next look. */
export async function known(server: TestServer, count: number): Promise<void> {
  await eventually("it knows the others", () => server.instances.liveOthers.length === count);
}

export interface Pair {
  /** Has the sandbox. */
  readonly owner: TestServer;
  /** The one that is asked. */
  readonly asked: TestServer;
  /** The sandbox as its owner reports it. */
  readonly box: SandboxClient;
  /** The address of the sandbox at the server that does not have it. */
  readonly url: string;
}

/** Two servers of one store, and a sandbox on one of them. */
export async function pair(options: TestServerOptions = {}, body: object = {}): Promise<Pair> {
  const store = await temporaryFolder();
  const [owner, asked] = [await startTestServer({ store, ...options }), await startTestServer({ store, ...options })];
  const [key] = options.apiKeys ?? [];
  const response = await fetch(`${owner.httpUrl}/v1/sandboxes`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(key === undefined ? {} : bearer(key)) },
    body: JSON.stringify(body),
  });
  const { id } = (await response.json()) as { id: string };
  const box = new SandboxClient(owner, id);
  return { owner, asked, box, url: `${asked.httpUrl}/v1/sandboxes/${id}` };
}

export function bearer(key: string): { readonly authorization: string } {
  return { authorization: `Bearer ${key}` };
}

export interface Told {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown> & {
    readonly id: string;
    readonly token: string;
    readonly error: { code: string; details: Record<string, unknown> };
  };
}

/** A call as JSON. */
export async function call(method: string, url: string, body?: unknown, headers: object = {}): Promise<Told> {
  const response = await fetch(url, {
    method,
    headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const parsed = (text === "" ? {} : JSON.parse(text)) as Told["body"];
  return { status: response.status, headers: response.headers, body: parsed };
}
