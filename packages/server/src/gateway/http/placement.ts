import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { asSandboxerError, parseObject, type Route, type RouteName, SandboxerError } from "@sandboxer/protocol";
import type { OtherServer } from "../../manager/ownership/owner-elsewhere.ts";
import { type ServerSearch, serversWithRoom } from "../../manager/ownership/servers-with-room.ts";
import type { PeerSecret } from "../access/peer-secret.ts";
import { requestOtherServer } from "../relay/other-server-request.ts";
import { readText } from "../relay/read-text.ts";
import { passedRequestHeaders, relayWish } from "../relay/relay-headers.ts";
import { refusal } from "../relay/socket-relay.ts";
import type { Call } from "./handler.ts";

/** Calls that start a sandbox, wherever there is room. Their bodies are short. */
const PLACED: ReadonlySet<RouteName> = new Set<RouteName>([
  "acquireSandbox",
  "createSandbox",
  "restoreSnapshot",
  "resumeSandbox",
]);

const ROUNDS = 3;
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

export interface PlacementOptions extends ServerSearch {
  readonly secret: PeerSecret;
}

/** Whether another server may carry the call out if this one is full. */
export function isPlaceable(name: RouteName, request: IncomingMessage): boolean {
  return PLACED.has(name) && relayWish(request) !== "never";
}

/**
 * Finds a place for a sandbox that this server has no room for: of two random servers with room, the one with more. A
 * server that refuses, or has less room than it said, is passed over. A call is placed once, because the other server
 * does not pass it on again.
 */
export class Placement {
  readonly #options: PlacementOptions;

  constructor(options: PlacementOptions) {
    this.#options = options;
  }

  /** The answer of the server that had room. Throws `error`, with which this server refused, if none has. */
  async elsewhere(call: Call<Route>, error: unknown): Promise<unknown> {
    const { placeable, options } = call;
    const refused = asSandboxerError(error);
    // A client's encryption key is not passed on, and the other server would need it.
    const mayGo = refused.details["full"] !== undefined && options.encryption?.presentedKey === undefined;
    if (placeable === undefined || !mayGo) throw error;
    for await (const server of serversWithRoom(this.#options, ROUNDS)) {
      const answer = await this.#ask(server, call, placeable);
      if (answer !== undefined) return answer.body;
    }
    throw error;
  }

  /** Undefined: it did nothing, and another server may be asked. */
  async #ask(
    server: OtherServer,
    { caller, signal }: Call<Route>,
    { message, body }: NonNullable<Call<Route>["placeable"]>,
  ): Promise<{ readonly body: unknown } | undefined> {
    const { method = "POST", url: path = "/" } = message;
    // This server keeps the caller's idempotency key, and answers with the whole result.
    const {
      "idempotency-key": key,
      prefer: _,
      ...headers
    } = passedRequestHeaders(message.headers, caller.authorization);
    const once = key === undefined ? {} : { "idempotency-key": placedKey(String(key)) };
    const passed = {
      method,
      path,
      headers: { ...headers, ...once, ...this.#options.secret.relayedHeaders({ method, url: path }) },
    };
    const { request, answer: answered, failure } = requestOtherServer(server, passed);
    // With a key the other server completes the call, and a repeated call gets its answer.
    const onGone = (): void => void (key === undefined && request.destroy());
    signal.addEventListener("abort", onGone, { once: true });
    try {
      request.end(body);
      const answer = await answered();
      const { statusCode = 500 } = answer;
      if (statusCode < 300) return { body: parseObject(await readText(answer, { maxBytes: MAX_ANSWER_BYTES })) };
      const error = await refusal(server, answer);
      if (error.row.httpStatus === 429 || error.row.httpStatus >= 500 || error.code === "permission_denied")
        return undefined;
      throw error;
    } catch (thrown) {
      const error = thrown instanceof SandboxerError ? thrown : failure(thrown);
      // Otherwise it may have created the sandbox.
      if (error.details["reached"] === false) return undefined;
      throw error;
    } finally {
      signal.removeEventListener("abort", onGone);
    }
  }
}

/** Another key than the caller's, whose call this server carries out; the same wherever the call is repeated. */
function placedKey(key: string): string {
  return `placed-${createHash("sha256").update(key).digest("hex")}`;
}
