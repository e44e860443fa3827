import type { creationMessageSchema } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { Connection, type ConnectionKeys } from "./connection.ts";
import { SandboxSession } from "./sandbox-session.ts";

/** The creation message of the protocol; every field is optional. */
export type SandboxConfiguration = (typeof creationMessageSchema)["_zod"]["input"];

export interface ConnectOptions extends ConnectionKeys {
  readonly signal?: AbortSignal;
}

export interface AttachOptions extends ConnectOptions {
  /** The token that came with the sandbox's id. */
  readonly token?: string;
  /** The name of an older checkpoint to resume from, such as `checkpoint_1790000000000.img`. */
  readonly checkpoint?: string;
}

/** Creates a sandbox on the server at `url` (http, https, ws or wss). Resolves when it runs. */
export async function create(
  url: string,
  configuration: SandboxConfiguration = {},
  options: ConnectOptions = {},
): Promise<SandboxSession> {
  const connection = new Connection(endpoint(url, "create"), options);
  let identity: { id: string; token: string } | undefined;
  const running = connection.until<{ id: string; token: string }>(({ event }) => {
    if (event.event === "sandbox_id") identity = { id: event.sandbox_id, token: event.sandbox_token };
    return event.event === "status_update" && event.status === "SANDBOX_RUNNING" ? identity : undefined;
  }, "close");
  connection.send({ ...configuration, extensions: true });
  const { id, token } = await abortable(connection, running, options.signal);
  return new SandboxSession(connection, id, token);
}

/** Attaches to a sandbox, running or paused. Resolves when it runs. */
export async function attach(url: string, sandboxId: string, options: AttachOptions = {}): Promise<SandboxSession> {
  const target = endpoint(url, `attach/${encodeURIComponent(sandboxId)}`);
  target.searchParams.set("extensions", "1");
  // Behind a balancer the request may reach any server: the one that has the sandbox serves it, and nothing moves.
  target.searchParams.set("relay", "allow");
  if (options.token !== undefined) target.searchParams.set("sandbox_token", options.token);
  if (options.checkpoint !== undefined) target.searchParams.set("checkpoint", options.checkpoint);
  const connection = new Connection(target, options);
  const running = connection.until<true>(({ event }) => {
    if (event.event !== "status_update") return undefined;
    if (event.status === "SANDBOX_IN_USE")
      throw new SandboxerError("sandbox_in_use", `Another client is attached to ${sandboxId}.`);
    if (event.status === "SANDBOX_NOT_FOUND")
      throw new SandboxerError("sandbox_not_found", `There is no sandbox ${sandboxId}.`);
    return event.status === "SANDBOX_RUNNING" ? true : undefined;
  }, "close");
  await abortable(connection, running, options.signal);
  return new SandboxSession(connection, sandboxId, options.token);
}

function endpoint(base: string, path: string): URL {
  const url = new URL(base);
  url.protocol = url.protocol.replace("http", "ws");
  url.pathname = `${url.pathname.replace(/\/$/, "")}/${path}`;
  return url;
}

/** Closes the connection when the signal aborts or the attempt fails. */
async function abortable<Result>(
  connection: Connection,
  attempt: Promise<Result>,
  signal: AbortSignal | undefined,
): Promise<Result> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal?.reason as Error);
  if (signal?.aborted === true) onAbort();
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([attempt, aborted.promise]);
  } catch (error) {
    attempt.catch(() => {});
    connection.close();
    throw error;
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}
