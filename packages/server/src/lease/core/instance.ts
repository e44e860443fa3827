import { BucketMap } from "../../support/bucket-map.ts";
import type { Effect } from "./effects.ts";
import { heldIds, type InstanceState } from "./instance-state.ts";
import { look } from "./looking.ts";
import type { Address, LeaseEvent, Reply } from "./messages.ts";
import { buryCertainly, lookAround, observe, onOthersReply, onOthersTimer } from "./others.ts";
import { goOn, onAbandon, onCommand, onDeath, onRung, onSandboxReply, onSandboxTimer } from "./sandbox.ts";
import { emptySandbox, type SandboxState } from "./sandbox-state.ts";
import { closeSelf, noticeFreeze, onSelfReply, onSelfTimer, startSelf } from "./self.ts";
import { StepContext } from "./step-context.ts";

export interface Step {
  readonly state: InstanceState;
  /** To be carried out in this order. */
  readonly effects: readonly Effect[];
}

/**
 * The protocol: the reaction of an instance to one event. It reads no clock and no store; it returns effects, and their
 * outcomes come in as further events. See docs/explanation/ownership.md.
 */
export function step(before: InstanceState, event: LeaseEvent): Step {
  const context = new StepContext(viewOf(before, event), before.sequence);
  let state = before;
  if (state.self !== undefined) state = { ...state, self: noticeFreeze(state.self, () => heldIds(before), context) };
  state = route(state, event, context);
  for (const instanceId of context.missing.splice(0)) {
    state = { ...state, others: buryCertainly(state.others, instanceId, undefined, context) };
  }
  if (state.others.dead.size > before.others.dead.size) {
    context.view = viewOf(state, event);
    state = forEach(state, (sandbox) => onDeath(sandbox, context));
  }
  return { state: { ...state, sequence: context.sequence }, effects: context.effects };
}

function viewOf(state: InstanceState, { nowMs, wallMs }: LeaseEvent): StepContext["view"] {
  const { settings, self, others, instanceId: me } = state;
  const registered = self?.condition === "alive" || self?.condition === "closing";
  return { settings, me, registered, nowMs, wallMs, isDead: (instanceId) => others.dead.has(instanceId) };
}

function route(state: InstanceState, event: LeaseEvent, context: StepContext): InstanceState {
  switch (event.kind) {
    case "start":
      return start(state, event, context);
    case "reply":
      return onReply(state, event, context);
    case "timer":
      return onTimer(state, event.to, context);
    case "command":
      return update(state, event.sandboxId, (sandbox) => onCommand(sandbox, event.ticket, event.command, context));
    case "abandon":
      return update(state, event.sandboxId, (sandbox) => onAbandon(sandbox, event.ticket, context));
    case "forget":
      return update(state, event.sandboxId, forgotten);
    case "rung":
      if (event.sandboxId === undefined) return forEach(state, (sandbox) => look(sandbox, context));
      return update(state, event.sandboxId, (sandbox) => onRung(sandbox, context));
    case "bury":
      return { ...state, others: buryCertainly(state.others, event.instanceId, event.ticket, context) };
    case "advertise":
      return { ...state, settings: { ...state.settings, advert: event.advert } };
    case "close":
      if (state.self !== undefined) return { ...state, self: closeSelf(state.self, event.ticket, context) };
      context.tell({ kind: "closed", ticket: event.ticket });
      return state;
  }
}

function start(
  state: InstanceState,
  event: LeaseEvent & { readonly kind: "start" },
  context: StepContext,
): InstanceState {
  if (state.self !== undefined) return state;
  const born: InstanceState = { ...state, instanceId: event.instanceId };
  context.view = viewOf(born, event);
  return { ...born, self: startSelf(context) };
}

function onReply(
  state: InstanceState,
  event: LeaseEvent & { readonly kind: "reply" },
  context: StepContext,
): InstanceState {
  const { to, reply } = event;
  if (to.part === "self") return onOwnReply(state, event, context);
  if (to.part === "others") return { ...state, others: onOthersReply(state.others, to.name, to.id, reply, context) };
  const seen = observeOwner(state, to, reply, context);
  context.view = viewOf(seen, event);
  return update(seen, to.name, (sandbox) => onSandboxReply(sandbox, to.id, reply, context));
}

/** An instance that waits for an owner reads its record more often than the rounds do. */
function observeOwner(state: InstanceState, to: Address, reply: Reply, context: StepContext): InstanceState {
  const phase = state.sandboxes.get(to.name)?.operation?.phase;
  if (phase?.at !== "liveness" || phase.id !== to.id || phase.base.head.owner === null) return state;
  return { ...state, others: observe(state.others, phase.base.head.owner, to.id, reply, context) };
}

function onOwnReply(
  state: InstanceState,
  event: LeaseEvent & { readonly kind: "reply" },
  context: StepContext,
): InstanceState {
  if (state.self === undefined) return state;
  const result = onSelfReply(state.self, event.to.id, event.reply, () => heldIds(state), context);
  if ("fencedBecause" in result) return fenced(state, result.fencedBecause, context);
  const next: InstanceState = { ...state, self: result.self };
  if (state.self.condition !== "registering" || result.self.condition !== "alive") return next;
  context.view = viewOf(next, event);
  const { sweepTimer, others } = next;
  const watching: InstanceState = {
    ...next,
    others: others.lookTimer === undefined ? lookAround(others, context) : others,
    sweepTimer: sweepTimer ?? context.timer("sweep", "", state.settings.sweepTickMs),
  };
  return forEach(watching, (sandbox) => goOn(sandbox, context));
}

/** Everything that was held or in progress is void. Knowledge about other instances stays. */
function fenced(state: InstanceState, why: string, context: StepContext): InstanceState {
  const reason = `The instance ${state.instanceId} ${why}.`;
  context.tell({ kind: "fenced", instanceId: state.instanceId, reason, sandboxIds: heldIds(state) });
  for (const { operation, queue } of state.sandboxes.values()) {
    for (const { ticket } of operation === undefined ? queue : [operation, ...queue]) {
      if (ticket !== undefined) context.tell({ kind: "failed", ticket, failure: { kind: "lost", head: undefined } });
    }
  }
  return { ...state, self: undefined, sandboxes: BucketMap.empty(), unswept: [] };
}

function onTimer(state: InstanceState, { part, name, id }: Address, context: StepContext): InstanceState {
  const alive = state.self?.condition === "alive";
  switch (part) {
    case "self":
      return state.self === undefined ? state : { ...state, self: onSelfTimer(state.self, id, context) };
    case "others":
      // The rounds start again with the next life.
      if (state.others.lookTimer === id && !alive) {
        return { ...state, others: { ...state.others, lookTimer: undefined } };
      }
      return { ...state, others: onOthersTimer(state.others, name, id, context) };
    case "sweep":
      return alive ? sweep(state, context) : { ...state, sweepTimer: undefined };
    case "sandbox":
      return update(state, name, (sandbox) => onSandboxTimer(sandbox, id, context));
  }
}

/** Looks at the next few held sandboxes; after the last one, the round begins again. */
function sweep(before: InstanceState, context: StepContext): InstanceState {
  const { sweepMs, sweepTickMs, sweepMost } = before.settings;
  let state = before;
  const round = before.unswept.length > 0 ? before.unswept : heldIds(before);
  // Enough to get through within the time of a round, if that is not too many.
  const share = Math.min(Math.ceil((before.sandboxes.size * sweepTickMs) / sweepMs), sweepMost);
  for (const sandboxId of round.slice(0, share)) {
    state = update(state, sandboxId, (sandbox) => (sandbox.look === undefined ? look(sandbox, context) : sandbox));
  }
  return { ...state, unswept: round.slice(share), sweepTimer: context.timer("sweep", "", sweepTickMs) };
}

function forgotten(sandbox: SandboxState): SandboxState {
  return { ...sandbox, held: undefined, announced: undefined, look: undefined };
}

type Change = (sandbox: SandboxState) => SandboxState;

function update(state: InstanceState, sandboxId: string, change: Change): InstanceState {
  const before = state.sandboxes.get(sandboxId);
  const after = change(before ?? emptySandbox(sandboxId));
  return after === before ? state : { ...state, sandboxes: put(state.sandboxes, after) };
}

function forEach(state: InstanceState, change: Change): InstanceState {
  let { sandboxes } = state;
  for (const sandbox of state.sandboxes.values()) sandboxes = put(sandboxes, change(sandbox));
  return { ...state, sandboxes };
}

/** A sandbox that is neither held nor in progress is forgotten. */
function put(sandboxes: BucketMap<SandboxState>, sandbox: SandboxState): BucketMap<SandboxState> {
  const idle = sandbox.held === undefined && sandbox.operation === undefined && sandbox.queue.length === 0;
  return sandboxes.with(sandbox.sandboxId, idle ? undefined : sandbox);
}
