import type { Logger } from "pino";
import { ERRORS, errorBodySchema, parseObject, SandboxerError, type ErrorCode } from "@sandboxer/protocol";
import { z } from "zod";
import { INSTANCE, PEER_HEADER, type PeerSecret, ringOf } from "../gateway/access/peer-secret.ts";
import { readText } from "../gateway/relay/read-text.ts";
import type { Peers } from "../manager/ownership/peers.ts";

/** Longer than any handoff: the other server gives up by itself. */
const RESUME_MS = 10 * 60_000;

/** A list of servers waits for all of them. */
const CONDITION_MS = 1_000;

/** An error or a status has a few hundred bytes. */
const MAX_ANSWER_BYTES = 64 * 1024;

const conditionSchema = z.object({
  instance_id: z.string().max(128).nullable(),
  frozen: z.boolean().nullable(),
  frozen_reason: z.string().max(2000).nullable(),
});

/** Calls other servers of the same store over HTTP, with the caller's own key. */
export function httpPeers(secret: PeerSecret): Peers {
  return {
    async resume(url, sandboxId, { authorization }) {
      const target = new URL(`v1/sandboxes/${encodeURIComponent(sandboxId)}/resume`, `${url}/`);
      const response = await fetch(target, {
        method: "POST",
        headers: authorization === undefined ? {} : { authorization },
        redirect: "error",
        signal: AbortSignal.timeout(RESUME_MS),
      }).catch((error: unknown) => {
        throw new SandboxerError("server_unreachable", `The server ${url} cannot be reached.`, { cause: error });
      });
      if (!response.ok) throw await refusalOf(url, response);
      await response.body?.cancel();
    },
    async condition(url) {
      try {
        const response = await fetch(new URL("internal/instance", `${url}/`), {
          headers: { [PEER_HEADER]: secret.proofOf(INSTANCE) },
          redirect: "error",
          signal: AbortSignal.timeout(CONDITION_MS),
        });
        return conditionSchema.safeParse(await objectOf(response)).data;
      } catch {
        return undefined;
      }
    },
  };
}

async function refusalOf(url: string, response: Response): Promise<SandboxerError> {
  const body = errorBodySchema.safeParse(await objectOf(response).catch(() => undefined));
  if (!body.success) return new SandboxerError("internal", `The server ${url} answered with ${response.status}.`);
  const { code, message, hint, details } = body.data.error;
  const known = Object.hasOwn(ERRORS, code) ? (code as ErrorCode) : "internal";
  return new SandboxerError(known, `${url}: ${message}`, { hint, details });
}

/** The server may be a stranger: its address comes from the store. */
async function objectOf(response: Response): Promise<unknown> {
  if (response.body === null) return undefined;
  return parseObject(await readText(response.body, { maxBytes: MAX_ANSWER_BYTES }));
}

const RING_MS = 2000;

/**
 * Tells a server that one of its sandboxes is requested. It would also notice by itself, a little later: a lost
 * notification costs only time.
 */
export function ringOver(
  secret: PeerSecret,
  log: Pick<Logger, "debug">,
): (url: string, sandboxId: string) => Promise<void> {
  return async (url, sandboxId) => {
    try {
      const target = new URL(`internal/ring/${encodeURIComponent(sandboxId)}`, `${url}/`);
      const headers = { [PEER_HEADER]: secret.proofOf(ringOf(sandboxId)) };
      const signal = AbortSignal.timeout(RING_MS);
      await (await fetch(target, { method: "POST", headers, redirect: "error", signal })).body?.cancel();
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
