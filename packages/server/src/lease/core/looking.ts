import type { Reply } from "./messages.ts";
import { isOpen } from "./owning.ts";
import { isOurs, lose, type SandboxState } from "./sandbox-state.ts";
import type { Turn } from "./turn.ts";

/** Looks whether somebody asks for a sandbox that is held. An operation under way finds that out by itself. */
export function look(sandbox: SandboxState, turn: Turn): SandboxState {
  const { sandboxId, held, operation } = sandbox;
  if (held === undefined || operation !== undefined) return sandbox;
  const id = turn.request("sandbox", sandboxId, { kind: "read-head", sandboxId });
  return { ...sandbox, look: id };
}

export function onLooked(sandbox: SandboxState, reply: Reply, turn: Turn): SandboxState {
  const idle: SandboxState = { ...sandbox, look: undefined };
  const { held } = sandbox;
  if (held === undefined || (reply.outcome !== "head" && reply.outcome !== "absent")) return idle;
  if (reply.outcome === "absent" || !("head" in reply.stored)) return lose(idle, undefined, turn);
  const found = { head: reply.stored.head, version: reply.version };
  if (!isOurs(found, turn.view.me, held.head.epoch)) return lose(idle, found.head, turn);
  return announce({ ...idle, held: found }, turn);
}

/** Tells the manager of each request once. */
export function announce(sandbox: SandboxState, turn: Turn): SandboxState {
  const want = sandbox.held?.head.want ?? null;
  if (!isOpen(want) || turn.view.isDead(want.instance_id)) return sandbox;
  const request = want.request ?? want.instance_id;
  if (request === sandbox.announced) return sandbox;
  turn.tell({ kind: "wanted", sandboxId: sandbox.sandboxId, by: want.instance_id });
  return { ...sandbox, announced: request };
}
