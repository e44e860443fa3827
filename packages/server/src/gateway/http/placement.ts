import { createHash } from "node:crypto";
import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { parseObject, type Route, type RouteName, SandboxerError } from "@sandboxer/protocol";
import { isPlaceProblem, isPreference } from "../../manager/ownership/affinity.ts";
import type { OtherServer } from "../../manager/ownership/owner-elsewhere.ts";
import type { PlacingVerbs } from "../../manager/ownership/placing-verbs.ts";
import type { Wanted } from "../../manager/ownership/wanted.ts";
import type { CopiesElsewhere } from "../../manager/snapshots/fork.ts";
import type { PeerSecret } from "../access/peer-secret.ts";
import { requestOtherServer } from "../relay/other-server-request.ts";
import { readText } from "../relay/read-text.ts";
import { NOT_AGAIN, passedRequestHeaders, relayWish, withKey } from "../relay/relay-headers.ts";
import { refusal } from "../relay/socket-relay.ts";
import type { Call, Caller } from "./handler.ts";

/** Calls that start a sandbox, wherever there is room. Their bodies are short. */
const PLACED: ReadonlySet<RouteName> = new Set<RouteName>([
  "acquireSandbox",
  "createSandbox",
  "restoreSnapshot",
  "resumeSandbox",
]);

const ROUNDS = 3;
/** For a state that this server could not load: each server that tries may have to fetch the whole image first. */
const ROUNDS_WITH_IMAGES = 1;
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;
/** This server may not be asked this, is full, or fails before it has done anything. */
const MAY_TRY_OTHERS: ReadonlySet<number> = new Set([403, 429]);
/** With the proof of a server: the restored sandbox is one of a fork. */
const FORK_HEADER = "sandboxer-fork";

/** Whether another server may carry the call out if this one is full, or cannot run the sandbox. */
export function isPlaceable(name: RouteName, request: IncomingMessage): boolean {
  return PLACED.has(name) && relayWish(request) !== "never";
}

interface Question {
  readonly method: string;
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
  readonly body?: Buffer;
  /** Whether the other server completes the call when the client is gone: a repeated call gets its answer. */
  readonly isKept?: boolean;
}

interface Taken {
  readonly server: OtherServer;
  readonly record: Record<string, unknown>;
}

/**
 * Finds a place for a sandbox that this server has no room for, or cannot run: the better of two servers that fit. A
 * server that refuses, or has less room than it said, is passed over. A call is placed once, because the other server
 * does not pass it on again.
 */
export class Placement {
  readonly #placing: PlacingVerbs;
  readonly #secret: PeerSecret;

  constructor(placing: PlacingVerbs, secret: PeerSecret) {
    this.#placing = placing;
    this.#secret = secret;
  }

  /**
   * The answer of the server that took it. Undefined: this server may run it, but others were preferred and none took
   * it. Throws why this server refused, or why no server fits.
   */
  async elsewhere(name: RouteName, call: Call<Route>, refused: unknown): Promise<unknown> {
    const { placeable, options, caller, signal } = call;
    // A client's encryption key is not passed on, and the other server would need it.
    const mayGo = placeable !== undefined && options.encryption?.presentedKey === undefined;
    if (!mayGo || !isPlaceProblem(refused)) throw refused;
    const question = passedOn(call.message, caller, placeable);
    // A sandbox that runs stays where it is.
    const owner = name === "resumeSandbox" ? await this.#placing.ownerOf(idOf(call)) : undefined;
    const there = owner === undefined ? undefined : await this.#ask(owner, question, signal);
    if (there !== undefined) return there;
    const wanted = await this.#wantedBy(name, call);
    const { misfit } = refused.details;
    const taken = await this.#offer(wanted, question, signal, misfit === "image" ? ROUNDS_WITH_IMAGES : ROUNDS);
    if (taken !== undefined) return taken.record;
    if (isPreference(refused)) return undefined;
    throw misfit === "labels" ? await this.#placing.whyNone(wanted.affinity) : refused;
  }

  /** For copies of a fork that this server has no room for; undefined: the client wants all of them here. */
  copiesOf({ caller, signal, message, options }: Call<Route>): CopiesElsewhere | undefined {
    const isForbidden = relayWish(message) === "never" && !this.#secret.isRelayed(message);
    if (isForbidden || options.encryption?.presentedKey !== undefined) return undefined;
    return async (snapshotId, body) => {
      const wanted = await this.#placing.bySnapshot(snapshotId, body);
      const headers = { [FORK_HEADER]: "1", "content-type": "application/json" };
      const path = `/v1/snapshots/${snapshotId}/restore`;
      const question = ownCall("POST", path, { caller, headers, body: Buffer.from(JSON.stringify(body)) });
      const taken = await this.#offer(wanted, question, signal);
      if (taken === undefined) return undefined;
      const { carried: _, ...record } = taken.record;
      const removal = ownCall("DELETE", `/v1/sandboxes/${String(record["id"])}`, { caller });
      return { record, remove: () => this.#remove(taken.server, removal) };
    };
  }

  /** Whether another server of the store creates a copy of a fork with this call. */
  isOfFork(message: IncomingMessage): boolean {
    return message.headers[FORK_HEADER] === "1" && this.#secret.isRelayed(message);
  }

  async #wantedBy(name: RouteName, call: Call<Route>): Promise<Wanted> {
    const { body } = call;
    if (name === "resumeSandbox") return await this.#placing.bySandbox(idOf(call));
    if (name === "restoreSnapshot") return await this.#placing.bySnapshot(idOf(call), body ?? {});
    return this.#placing.byRequest(body ?? {});
  }

  async #remove(server: OtherServer, removal: Question): Promise<void> {
    if ((await this.#ask(server, removal)) !== undefined) return;
    const what = `The server ${server.url} did not delete ${removal.path}.`;
    throw new SandboxerError("server_unreachable", what);
  }

  /** Undefined: no server took it. */
  async #offer(wanted: Wanted, question: Question, signal: AbortSignal, rounds = ROUNDS): Promise<Taken | undefined> {
    for await (const server of this.#placing.servers(wanted, rounds)) {
      const record = await this.#ask(server, question, signal);
      if (record !== undefined) return { server, record };
    }
    return undefined;
  }

  /** Undefined: it did nothing, and another server may be asked. */
  async #ask(
    server: OtherServer,
    { method, path, headers, body, isKept = false }: Question,
    signal?: AbortSignal,
  ): Promise<Record<string, unknown> | undefined> {
    const proof = this.#secret.relayedHeaders({ method, url: path });
    const passed = { method, path, headers: { ...headers, ...proof } };
    const { request, answer: answered, failure } = requestOtherServer(server, passed);
    const onGone = (): void => void (!isKept && request.destroy());
    signal?.addEventListener("abort", onGone, { once: true });
    try {
      request.end(body);
      const answer = await answered();
      const { statusCode = 500 } = answer;
      if (statusCode < 300) return notHere(parseObject(await readText(answer, { maxBytes: MAX_ANSWER_BYTES })) ?? {});
      const error = await refusal(server, answer);
      const { httpStatus } = error.row;
      if (httpStatus >= 500 || MAY_TRY_OTHERS.has(httpStatus) || isPlaceProblem(error)) return undefined;
      throw error;
    } catch (thrown) {
      const error = thrown instanceof SandboxerError ? thrown : failure(thrown);
      // Otherwise it may have created the sandbox.
      if (error.details["reached"] === false) return undefined;
      throw error;
    } finally {
      signal?.removeEventListener("abort", onGone);
    }
  }
}

/** Of the sandbox or snapshot that a call is about. */
function idOf({ params }: Call<Route>): string {
  return ((params ?? {}) as { readonly id?: string }).id ?? "";
}

/** The call as it came, for the caller. */
function passedOn(message: IncomingMessage, { authorization }: Caller, body: Buffer): Question {
  const { method = "POST", url: path = "/" } = message;
  // This server keeps the caller's idempotency key, and answers with the whole result.
  const { "idempotency-key": key, prefer: _, ...headers } = passedRequestHeaders(message.headers, authorization);
  const once = key === undefined ? {} : { "idempotency-key": placedKey(String(key)) };
  return { method, path, headers: { ...headers, ...once }, body, isKept: key !== undefined };
}

interface OwnCall {
  readonly caller: Caller;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: Buffer;
}

/** A call of this server, for the caller. */
function ownCall(method: string, path: string, { caller, headers = {}, body }: OwnCall): Question {
  const length = { "content-length": String(body?.byteLength ?? 0) };
  const question = { method, path, headers: { ...headers, ...length, ...withKey(caller.authorization), ...NOT_AGAIN } };
  return body === undefined ? question : { ...question, body };
}

/** `here` is true of the server that answers the client. */
function notHere(record: Record<string, unknown>): Record<string, unknown> {
  const { owner } = record;
  return typeof owner === "object" && owner !== null ? { ...record, owner: { ...owner, here: false } } : record;
}

/** Another key than the caller's, whose call this server carries out; the same wherever the call is repeated. */
function placedKey(key: string): string {
  return `placed-${createHash("sha256").update(key).digest("hex")}`;
}
