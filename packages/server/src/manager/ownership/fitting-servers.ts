import { type Affinity, SandboxerError } from "@sandboxer/protocol";
import type { RegisteredServer } from "../../lease/instances.ts";
import { shuffled } from "../../support/shuffled.ts";
import type { ObservingContext } from "../room-contexts.ts";
import { missingLabels, preferredLabels } from "./affinity.ts";
import { hasEngine, whyNotOn } from "./machine-fit.ts";
import type { OtherServer } from "./owner-elsewhere.ts";
import type { InstanceCondition, Room } from "./peers.ts";
import type { Wanted } from "./wanted.ts";

interface Candidate extends OtherServer {
  /** What it says about itself makes it better than others, whatever its room. */
  readonly rank: number;
}

/**
 * Other servers that may run a sandbox, by what they have published. In each round two of them are asked for their room,
 * at random among the best: first those with the engine of its saved state, then those with preferred labels. Of the two
 * the better one comes first: the one with its container image, then the one with more room.
 */
export async function* fittingServers(
  context: ObservingContext,
  wanted: Wanted,
  rounds: number,
): AsyncIterable<OtherServer> {
  const { peers } = context.options;
  if (peers === undefined) return;
  const waiting = candidatesOf(context, await liveOthers(context), wanted);
  for (let round = 0; round < rounds && waiting.length > 0; round += 1) {
    const asked = waiting.splice(0, 2).map(async (candidate) => {
      const said = await peers.condition(candidate.url, wanted.image);
      const isOpen = said?.instance_id === candidate.instanceId && said.frozen === false && hasRoom(said.room, wanted);
      return isOpen ? [{ candidate, said }] : [];
    });
    const open = (await Promise.all(asked)).flat();
    yield* open.toSorted(better).map(({ candidate }) => candidate);
  }
}

/** Whether another live server may run it once it has room. */
export async function fitsElsewhere(context: ObservingContext, wanted: Wanted): Promise<boolean> {
  return (await liveOthers(context)).some((server) => fits(server, wanted));
}

/** Refuses a sandbox if another live server has more of its preferred labels than this one. */
export async function checkPreference(context: ObservingContext, wanted: Wanted): Promise<void> {
  const { affinity } = wanted;
  const here = preferredLabels(context.options.labels, affinity);
  if (here === Object.keys(affinity?.prefer ?? {}).length) return;
  const candidates = (await liveOthers(context)).filter((server) => fits(server, wanted));
  if (candidates.every(({ labels }) => preferredLabels(labels, affinity) <= here)) return;
  throw new SandboxerError("no_fitting_server", "Another server has more of the labels that the sandbox prefers.", {
    details: { misfit: "preference" },
  });
}

/** Why no server runs a sandbox with this affinity: no live server has the labels, or those that have them are full. */
export async function noServerFits(
  context: ObservingContext,
  affinity: Affinity | null | undefined,
): Promise<SandboxerError> {
  const all = (await context.durable.ownership.instances.servers()).filter(({ alive }) => alive);
  const lacks = all.map(({ labels, here }) => missingLabels(here ? context.options.labels : labels, affinity));
  const required = missingLabels({}, affinity);
  if (lacks.some((missing) => missing.length === 0)) {
    return new SandboxerError(
      "no_fitting_server",
      `The servers with ${required.join(" and ")} have no room, cannot load the sandbox's state, or do not answer.`,
      { hint: "Try again later, or start another server with these labels (--server-labels).", details: { required } },
    );
  }
  const nowhere = required.filter((label) => lacks.every((missing) => missing.includes(label)));
  const missing = nowhere.length === 0 ? required : nowhere;
  const what = nowhere.length === 0 ? `both ${missing.join(" and ")}` : missing.join(" or ");
  return new SandboxerError("no_fitting_server", `No live server has ${what}, which the sandbox requires.`, {
    details: { misfit: "labels", missing },
  });
}

/** By the last list of the store; a server whose address is unknown cannot be asked. */
async function liveOthers({ durable }: ObservingContext): Promise<readonly RegisteredServer[]> {
  const servers = await durable.ownership.instances.servers();
  return servers.filter(({ alive, here }) => alive && !here);
}

function candidatesOf(
  { options }: ObservingContext,
  servers: readonly RegisteredServer[],
  wanted: Wanted,
): Candidate[] {
  const candidates = servers.flatMap((server): Candidate[] => {
    const { instanceId, url } = server;
    if (url === undefined || url === options.url || !fits(server, wanted)) return [];
    return [{ instanceId, url, tls: options.peerTls?.(), rank: rankOf(server, wanted) }];
  });
  return shuffled(candidates).toSorted((left, right) => right.rank - left.rank);
}

/** A server of an earlier release says nothing about its backends; it refuses what it cannot run. */
function fits({ labels, machines }: RegisteredServer, { affinity, backends, needs }: Wanted): boolean {
  if (missingLabels(labels, affinity).length > 0) return false;
  if (machines === undefined || backends.length === 0) return true;
  return backends.some((name) => {
    const machine = machines[name];
    return machine !== undefined && (needs === undefined || whyNotOn(machine, needs).length === 0);
  });
}

function rankOf({ labels, machines = {} }: RegisteredServer, { affinity, backends, needs }: Wanted): number {
  const isReady = needs === undefined || backends.some((name) => hasEngine(machines[name] ?? {}, needs));
  return preferredLabels(labels, affinity) + (isReady ? MORE_THAN_ALL_LABELS : 0);
}

const MORE_THAN_ALL_LABELS = 1000;

function hasRoom(room: Room | undefined, { resources }: Wanted): boolean {
  if (room === undefined || room.places === 0) return false;
  const has = (free: number | null, asked: number | undefined): boolean =>
    free === null || (free > 0 && free >= (asked ?? 0));
  return has(room.memory_bytes, resources.memoryBytes) && has(room.cpus, resources.cpus);
}

interface Open {
  readonly candidate: Candidate;
  readonly said: InstanceCondition;
}

function better(left: Open, right: Open): number {
  const rank = right.candidate.rank - left.candidate.rank;
  if (rank !== 0) return rank;
  const image = Number(right.said.has_image ?? false) - Number(left.said.has_image ?? false);
  return image === 0 ? moreRoom(left.said.room, right.said.room) : image;
}

function moreRoom(left: Room | undefined, right: Room | undefined): number {
  const memory = (right?.memory_bytes ?? 0) - (left?.memory_bytes ?? 0);
  return memory === 0 ? (right?.places ?? 0) - (left?.places ?? 0) : memory;
}
