import type { Reply } from "./messages.ts";
import { isOpen } from "./owning.ts";
import { isOurs, lose, type SandboxState } from "./sandbox-state.ts";
import type { StepContext } from "./step-context.ts";

/** Looks for requests for a held sandbox. An operation in progress finds them by itself. */
export function look(sandbox: SandboxState, context: StepContext): SandboxState {
  const { sandboxId, held, operation } = sandbox;
  if (held === undefined || operation !== undefined) return sandbox;
  const id = context.request("sandbox", sandboxId, { kind: "read-head", sandboxId });
  return { ...sandbox, look: id };
}

export function onLooked(sandbox: SandboxState, reply: Reply, context: StepContext): SandboxState {
  const idle: SandboxState = { ...sandbox, look: undefined };
  const { held } = sandbox;
  if (held === undefined || (reply.outcome !== "head" && reply.outcome !== "absent")) return idle;
  if (reply.outcome === "absent" || !("head" in reply.stored)) return lose(idle, undefined, context);
  const found = { head: reply.stored.head, version: reply.version };
  if (!isOurs(found, context.view.me, held.head.epoch)) return lose(idle, found.head, context);
  return announce({ ...idle, held: found }, context);
}

/** Tells the manager of each request once. */
export function announce(sandbox: SandboxState, context: StepContext): SandboxState {
  const want = sandbox.held?.head.want ?? null;
  if (!isOpen(want) || context.view.isDead(want.instance_id)) return sandbox;
  const request = want.request ?? want.instance_id;
  if (request === sandbox.announced) return sandbox;
  context.tell({ kind: "wanted", sandboxId: sandbox.sandboxId, by: want.instance_id });
  return { ...sandbox, announced: request };
}
