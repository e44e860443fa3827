import { signal, type ReadonlySignal } from "@preact/signals";
import type { EventRecord, SandboxRecord } from "@sandboxer/client";
import { client } from "../../session.ts";

const known = signal<ReadonlyMap<string, string>>(new Map());

/** The sandboxes that are moving to another server, with their targets. */
export const moves: ReadonlySignal<ReadonlyMap<string, string>> = known;

/** Follows the beginning and end of handoffs. */
export function noteMove({ type, sandboxId, data }: EventRecord): void {
  if (sandboxId === null) return;
  const { to } = data;
  if (type === "sandbox.handed_over" && typeof to === "string") setMove(sandboxId, to);
  if (type === "sandbox.taken_over") setMove(sandboxId, undefined);
  if (type !== "sandbox.state") return;
  // The event does not say why it is saved; the request can be looked up.
  if (to === "saving") void lookUp(sandboxId);
  if (to === "running") setMove(sandboxId, undefined);
}

/** A sandbox that runs on its target has arrived, whichever server reports it. */
export function settleMove({ id, state, owner }: SandboxRecord): void {
  if (state === "running" && owner?.instanceId === known.peek().get(id)) setMove(id, undefined);
}

/** The target server may die half-way; then the record has the location. */
export function forgetMove(id: string): void {
  setMove(id, undefined);
}

async function lookUp(sandboxId: string): Promise<void> {
  try {
    const handoffs = (await client.instances()).flatMap((instance) => instance.handoffs);
    const wanted = handoffs.find((handoff) => handoff.sandboxId === sandboxId && handoff.refused === null);
    if (wanted !== undefined) setMove(sandboxId, wanted.to);
  } catch {
    // Another event follows when it was saved.
  }
}

function setMove(id: string, to: string | undefined): void {
  const next = new Map(known.peek());
  if (to === undefined) next.delete(id);
  else next.set(id, to);
  known.value = next;
}
