import { signal, type ReadonlySignal } from "@preact/signals";
import type { EventRecord, SandboxRecord } from "@sandboxer/client";

interface Move {
  /** The instance that it goes to, where that is known. */
  readonly to: string | undefined;
}

const known = signal<ReadonlyMap<string, Move>>(new Map());

/** The sandboxes that are on their way to another server. */
export const moves: ReadonlySignal<ReadonlyMap<string, Move>> = known;

/** Hears that this server has given one up to another, and that this one has it now. */
export function noteMove({ type, sandboxId, data }: EventRecord): void {
  if (sandboxId === null) return;
  if (type === "sandbox.handed_over") setMove(sandboxId, { to: text(data["to"]) });
  if (type === "sandbox.taken_over") setMove(sandboxId, undefined);
}

/** One that runs where it was to go has arrived, whoever tells of it. */
export function settleMove({ id, state, owner }: SandboxRecord): void {
  const move = known.peek().get(id);
  if (move === undefined || state !== "running") return;
  if (move.to === undefined || owner?.instanceId === move.to) setMove(id, undefined);
}

function setMove(id: string, move: Move | undefined): void {
  const next = new Map(known.peek());
  if (move === undefined) next.delete(id);
  else next.set(id, move);
  known.value = next;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
