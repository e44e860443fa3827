import type { IncomingMessage, ServerResponse } from "node:http";
import { SandboxerError } from "@sandboxer/protocol";
import type { FastifyInstance } from "fastify";
import { NEVER_RENDERED } from "../console/security-headers.ts";
import { errorAnswer } from "./error-body.ts";
import { refuseWith } from "../websocket/refusal.ts";

/** After the patience, a body must arrive at least this fast on average. */
const LEAST_BYTES_PER_SECOND = 500;
const LOOKS_IN_PATIENCE = 30;
const MOST_BETWEEN_LOOKS_MS = 1_000;

/** Bodies that may take as long as they want. */
const PATIENT = new WeakSet<IncomingMessage>();

/** For a body that an authorized client sends bit by bit, as a person types. */
export function awaitBody(request: IncomingMessage): void {
  PATIENT.add(request);
}

/** A body that has not arrived completely. */
interface OpenBody {
  readonly answer: ServerResponse;
  bytes: number;
  seenBytes: number;
  /** How long the server has waited for the client: in total, and since the last byte. */
  waitedMs: number;
  idleMs: number;
}

/**
 * Aborts requests whose bodies arrive too slowly: nothing for `patienceMs`, or on average less than 500 bytes per
 * second beyond that time. Time in which the server itself does not read does not count, so that a long upload into a
 * busy sandbox continues.
 */
export function cutSlowBodies(app: FastifyInstance, patienceMs: number): void {
  const bodies = new Map<IncomingMessage, OpenBody>();
  app.addHook("onRequest", async ({ raw }, { raw: answer }) => {
    const hasBody = raw.headers["transfer-encoding"] !== undefined || Number(raw.headers["content-length"]) > 0;
    if (!hasBody) return;
    const body = { answer, bytes: 0, seenBytes: 0, waitedMs: 0, idleMs: 0 };
    bodies.set(raw, body);
    // Its own bytes: over HTTP/2, the other requests of a connection would hide that this one sends nothing.
    const push = raw.push.bind(raw);
    raw.push = (chunk: Uint8Array | null, ...rest) => {
      body.bytes += chunk?.length ?? 0;
      return push(chunk, ...rest);
    };
    const forget = (): void => void bodies.delete(raw);
    raw.once("end", forget).once("close", forget);
    answer.once("close", forget);
  });
  const everyMs = Math.min(MOST_BETWEEN_LOOKS_MS, patienceMs / LOOKS_IN_PATIENCE);
  const timer = setInterval(() => {
    for (const [request, body] of bodies) {
      if (!isTooSlow(request, body, everyMs, patienceMs)) continue;
      bodies.delete(request);
      cut(request, body);
    }
  }, everyMs).unref();
  app.addHook("onClose", async () => clearInterval(timer));
}

function isTooSlow(request: IncomingMessage, body: OpenBody, passedMs: number, patienceMs: number): boolean {
  if (request.complete || request.readableLength > 0 || PATIENT.has(request)) return false;
  body.waitedMs += passedMs;
  body.idleMs = body.bytes === body.seenBytes ? body.idleMs + passedMs : 0;
  body.seenBytes = body.bytes;
  const earnedMs = (body.bytes / LEAST_BYTES_PER_SECOND) * 1000;
  return body.idleMs >= patienceMs || body.waitedMs >= patienceMs + earnedMs;
}

function cut({ socket, httpVersionMajor }: IncomingMessage, { answer }: OpenBody): void {
  // Over HTTP/2 this ends the one request of the connection.
  if (answer.headersSent) return void socket.destroy();
  const error = new SandboxerError("timeout", "The body of the request was sent too slowly.");
  if (httpVersionMajor !== 2) return refuseWith(socket, error);
  const { status, body } = errorAnswer(error);
  answer.writeHead(status, { ...NEVER_RENDERED, "content-type": "application/json" }).end(JSON.stringify(body));
}
