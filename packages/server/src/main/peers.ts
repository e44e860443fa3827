import type { IncomingMessage } from "node:http";
import type { Logger } from "pino";
import { ERRORS, errorBodySchema, parseObject, SandboxerError, type ErrorCode } from "@sandboxer/protocol";
import { z } from "zod";
import { INSTANCE, offerOf, PEER_HEADER, type PeerSecret, ringOf } from "../gateway/access/peer-secret.ts";
import { type PassedRequest, requestOtherServer } from "../gateway/relay/other-server-request.ts";
import { NOT_AGAIN } from "../gateway/relay/relay-headers.ts";
import { readText } from "../gateway/relay/read-text.ts";
import type { Peers, PeerTls } from "../manager/ownership/peers.ts";

/** Longer than any handoff: the other server gives up by itself. */
const RESUME_MS = 10 * 60_000;

/** The other server only reads a head and reserves room. A server that drains waits for the answer. */
const OFFER_MS = 5_000;

/** A list of servers waits for all of them. */
const CONDITION_MS = 1_000;

/** An error or a status has a few hundred bytes. */
const MAX_ANSWER_BYTES = 64 * 1024;

const conditionSchema = z.object({
  instance_id: z.string().max(128).nullable(),
  frozen: z.boolean().nullable(),
  frozen_reason: z.string().max(2000).nullable(),
  room: z
    .object({
      places: z.number().nonnegative(),
      memory_bytes: z.number().nonnegative().nullable(),
      cpus: z.number().nonnegative().nullable(),
    })
    .optional(),
  has_image: z.boolean().optional(),
});

/** Undefined: Node's authorities, or plain HTTP. */
type OwnTls = () => PeerTls | undefined;

/** Calls other servers of the same store over HTTP, with the caller's own key. */
export function httpPeers(secret: PeerSecret, peerTls?: OwnTls): Peers {
  return {
    async resume(url, sandboxId, { authorization }) {
      const answer = await ask(url, peerTls, {
        method: "POST",
        path: `/v1/sandboxes/${encodeURIComponent(sandboxId)}/resume`,
        // A handoff is to that server and no other one.
        headers: { ...NOT_AGAIN, ...(authorization === undefined ? {} : { authorization }) },
        limitMs: RESUME_MS,
      }).catch((error: unknown) => {
        throw new SandboxerError("server_unreachable", `The server ${url} cannot be reached.`, { cause: error });
      });
      if (answer.statusCode !== 200) throw await refusalOf(url, answer);
      answer.destroy();
    },
    async offer(url, left) {
      const { sandboxId, epoch, from, reason } = left;
      const query = new URLSearchParams({ epoch: String(epoch), from, reason });
      const answer = await ask(url, peerTls, {
        method: "POST",
        path: `/internal/offers/${encodeURIComponent(sandboxId)}?${query.toString()}`,
        headers: { [PEER_HEADER]: secret.proofOf(offerOf(left)) },
        limitMs: OFFER_MS,
      });
      if (answer.statusCode !== 202) throw await refusalOf(url, answer);
      answer.destroy();
    },
    async condition(url, image) {
      try {
        const headers = { [PEER_HEADER]: secret.proofOf(INSTANCE) };
        const answer = await ask(url, peerTls, {
          method: "GET",
          path: `/internal/instance${image === undefined ? "" : `?${new URLSearchParams({ image }).toString()}`}`,
          headers,
          limitMs: CONDITION_MS,
        });
        return conditionSchema.safeParse(await objectOf(answer)).data;
      } catch {
        return undefined;
      }
    },
  };
}

interface Question extends PassedRequest {
  /** Until the head of the response, and then for its body. */
  readonly limitMs: number;
}

/** Nothing is sent before the other server has shown its certificate, if there must be one. */
async function ask(
  url: string,
  peerTls: OwnTls | undefined,
  { limitMs, ...passed }: Question,
): Promise<IncomingMessage> {
  const { request, answer } = requestOtherServer({ instanceId: "", url, tls: peerTls?.() }, passed);
  const timer = setTimeout(() => request.destroy(new Error("no answer in time")), limitMs);
  request.once("close", () => clearTimeout(timer));
  request.end();
  return await answer();
}

async function refusalOf(url: string, answer: IncomingMessage): Promise<SandboxerError> {
  const body = errorBodySchema.safeParse(await objectOf(answer).catch(() => undefined));
  if (!body.success) return new SandboxerError("internal", `The server ${url} answered with ${answer.statusCode}.`);
  const { code, message, hint, details } = body.data.error;
  const known = Object.hasOwn(ERRORS, code) ? (code as ErrorCode) : "internal";
  return new SandboxerError(known, `${url}: ${message}`, { hint, details });
}

/** The server may be a stranger: its address comes from the store. */
async function objectOf(answer: IncomingMessage): Promise<unknown> {
  try {
    return parseObject(await readText(answer, { maxBytes: MAX_ANSWER_BYTES }));
  } finally {
    answer.destroy();
  }
}

const RING_MS = 2000;

/**
 * Tells a server that one of its sandboxes is requested. It would also notice by itself, a little later: a lost
 * notification costs only time.
 */
export function ringOver(
  secret: PeerSecret,
  log: Pick<Logger, "debug">,
  peerTls?: OwnTls,
): (url: string, sandboxId: string) => Promise<void> {
  return async (url, sandboxId) => {
    try {
      const path = `/internal/ring/${encodeURIComponent(sandboxId)}`;
      const headers = { [PEER_HEADER]: secret.proofOf(ringOf(sandboxId)) };
      (await ask(url, peerTls, { method: "POST", path, headers, limitMs: RING_MS })).destroy();
    } catch (error) {
      log.debug({ url, err: error }, "another server could not be notified");
    }
  };
}

const ALIVE_MS = 2000;

/** Whether a server answers at an address. */
export async function isServerAlive(url: string): Promise<boolean> {
  try {
    const response = await fetch(new URL("healthz", `${url}/`), {
      redirect: "error",
      signal: AbortSignal.timeout(ALIVE_MS),
    });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}
