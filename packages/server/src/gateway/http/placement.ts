import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { asSandboxerError, parseObject, type Route, type RouteName, SandboxerError } from "@sandboxer/protocol";
import type { InstanceCondition, Room } from "../../manager/ownership/peers.ts";
import type { OtherServer } from "../../manager/ownership/owner-elsewhere.ts";
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

export interface PlacementOptions {
  /** The ids of the other live servers of the store. */
  readonly others: () => readonly string[];
  /** Undefined: it has ended, or its address is unknown. */
  readonly serverOf: (instanceId: string) => Promise<OtherServer | undefined>;
  /** The condition that a server reports about itself; undefined: it did not answer within a second. */
  readonly condition: (url: string) => Promise<InstanceCondition | undefined>;
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
    const waiting = shuffled(this.#options.others());
    for (let round = 0; round < ROUNDS && waiting.length > 0; round += 1) {
      for (const server of await this.#withRoom(waiting.splice(0, 2))) {
        const answer = await this.#ask(server, call, placeable);
        if (answer !== undefined) return answer.body;
      }
    }
    throw error;
  }

  /** The one with more room first. */
  async #withRoom(instanceIds: readonly string[]): Promise<readonly OtherServer[]> {
    const { serverOf, condition } = this.#options;
    const asked = instanceIds.map(async (instanceId) => {
      const server = await serverOf(instanceId);
      const said = server === undefined ? undefined : await condition(server.url);
      const isOpen = said?.instance_id === instanceId && said.frozen === false && hasRoom(said.room);
      return server !== undefined && isOpen ? [{ server, room: said.room }] : [];
    });
    const open = (await Promise.all(asked)).flat();
    return open.toSorted((left, right) => moreRoom(left.room, right.room)).map(({ server }) => server);
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

function hasRoom(room: Room | undefined): boolean {
  return room !== undefined && room.places > 0 && room.memory_bytes !== 0 && room.cpus !== 0;
}

function moreRoom(left: Room | undefined, right: Room | undefined): number {
  const memory = (right?.memory_bytes ?? 0) - (left?.memory_bytes ?? 0);
  return memory === 0 ? (right?.places ?? 0) - (left?.places ?? 0) : memory;
}

function shuffled<Item>(items: readonly Item[]): Item[] {
  return items
    .map((item) => ({ item, order: Math.random() }))
    .toSorted((left, right) => left.order - right.order)
    .map(({ item }) => item);
}
