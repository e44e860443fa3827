import { signal, type ReadonlySignal } from "@preact/signals";
import type { EventRecord, SandboxRecord } from "@sandboxer/client";
import { client } from "../../session.ts";

const known = signal<ReadonlyMap<string, string>>(new Map());

/** The sandboxes that are on their way to another server, with the instance that they go to. */
export const moves: ReadonlySignal<ReadonlyMap<string, string>> = known;

/** Hears of a handoff that begins, and of one that has ended. */
export function noteMove({ type, sandboxId, data }: EventRecord): void {
  if (sandboxId === null) return;
  const { to } = data;
  if (type === "sandbox.handed_over" && typeof to === "string") setMove(sandboxId, to);
  if (type === "sandbox.taken_over") setMove(sandboxId, undefined);
  if (type !== "sandbox.state") return;
  // Why it is saved is not told; whether somebody has asked for it can be looked up.
  if (to === "saving") void lookUp(sandboxId);
  if (to === "running") setMove(sandboxId, undefined);
}

/** One that runs where it was to go has arrived, whoever tells of it. */
export function settleMove({ id, state, owner }: SandboxRecord): void {
  if (state === "running" && owner?.instanceId === known.peek().get(id)) setMove(id, undefined);
}

/** The server that it was to go to may die on the way; then it is where its record says. */
export function forgetMove(id: string): void {
  setMove(id, undefined);
}

async function lookUp(sandboxId: string): Promise<void> {
  try {
    const handoffs = (await client.instances()).flatMap((instance) => instance.handoffs);
    const wanted = handoffs.find((handoff) => handoff.sandboxId === sandboxId && handoff.refused === null);
    if (wanted !== undefined) setMove(sandboxId, wanted.to);
  } catch {
    // It is told once more when it has been saved.
  }
}

function setMove(id: string, to: string | undefined): void {
  const next = new Map(known.peek());
  if (to === undefined) next.delete(id);
  else next.set(id, to);
  known.value = next;
}
