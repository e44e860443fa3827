import { type ResponseOf, type Routes, SandboxerError, type SandboxRecord } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import { findSandbox } from "../observing/describe.ts";
import type { Operation } from "../observing/operations/operation.ts";
import { runningSandbox } from "../running.ts";
import type { PeerCaller } from "./peers.ts";

export interface HandoffRequest {
  readonly sandboxId: string;
  /** The URL or id of a live server of the same store. */
  readonly to: string;
  readonly epoch: number | undefined;
  /** The credentials that the other server gets: the same as this one got. */
  readonly caller: PeerCaller;
  readonly operation?: Operation | undefined;
}

type HandedOff = ResponseOf<Routes["handoffSandbox"]>;

/**
 * Moves a sandbox to another server: that server is told to resume it, requests it through the store, and gets it as
 * usual. Only servers that the store knows are called, so that an address in a request reaches nobody else.
 */
export async function handOffSandbox(context: ManagerContext, request: HandoffRequest): Promise<HandedOff> {
  const { peers, url, durable } = context.options;
  const sandbox = await runningSandbox(context, request.sandboxId, request.epoch);
  if (peers === undefined || !sandbox.outlivesServer) {
    throw new SandboxerError(
      "checkpoint_disabled",
      "Only a sandbox that can be saved, or that its provider keeps, can be handed off.",
    );
  }
  const target = await targetOf(context, request.to);
  if (sandbox.facts.about.encryption?.held_by === "client") throw keyStaysHere(sandbox.id, target);
  const epochBefore = durable.ownership.held(request.sandboxId)?.epoch ?? 0;
  const startMs = context.nowMs;
  await peers.resume(target, request.sandboxId, request.caller);
  const runsMs = context.nowMs;
  const elapsed_ms = Math.round((runsMs - startMs) * 10) / 10;
  // The other server may run it before this one has finished saving it.
  await sandbox.queue.run(async () => {});
  const record = await findSandbox(context, request.sandboxId);
  // An address may lead to a different server than intended, even to this one, where the sandbox already runs.
  if (record.owner?.here === true || (record.epoch ?? 0) <= epochBefore) throw notTaken(target, record);
  const { stoppedMs } = sandbox;
  const paused_ms = stoppedMs === undefined ? null : Math.round((runsMs - stoppedMs) * 10) / 10;
  if (paused_ms !== null) request.operation?.paused(paused_ms);
  return { sandbox: record, from: url ?? null, to: target, elapsed_ms, paused_ms };
}

async function targetOf(context: ManagerContext, to: string): Promise<string> {
  const servers = await context.durable.ownership.instances.servers();
  const wanted = to.replace(/\/+$/, "");
  const found = servers.find(({ instanceId, url }) => instanceId === to || url?.replace(/\/+$/, "") === wanted);
  if (found?.here === true) throw new SandboxerError("bad_request", "The sandbox is already on that server.");
  if (found?.alive === true && found.url !== undefined) return found.url;
  const known = servers.flatMap(({ alive, here, url }) => (alive && !here && url !== undefined ? [url] : []));
  throw new SandboxerError("bad_request", `This store has no server ${JSON.stringify(to.slice(0, 200))}.`, {
    hint: known.length === 0 ? "No other server uses this store now." : `Known servers: ${known.join(", ")}.`,
  });
}

/**
 * The other server decrypts the saved state, and a client's key goes only from the client to the server that needs it.
 */
function keyStaysHere(sandboxId: string, target: string): SandboxerError {
  return new SandboxerError(
    "key_required",
    "The sandbox is encrypted with its client's own key, which servers do not pass on to each other.",
    {
      hint: `Resume the sandbox on the other server with that key, which moves it there: POST ${target}/v1/sandboxes/${sandboxId}/resume.`,
      details: { url: target },
    },
  );
}

function notTaken(target: string, { epoch, owner }: SandboxRecord): SandboxerError {
  return new SandboxerError("server_unreachable", `${target} answered but did not resume the sandbox.`, {
    hint: "A different server answers at that address. Start each server with its own --advertise-url.",
    details: { url: target, epoch, owner: owner?.instance_id ?? null },
  });
}
