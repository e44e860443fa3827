import type { StoreRequest } from "../../../src/lease/core/effects.ts";
import type { Reply } from "../../../src/lease/core/messages.ts";
import { REQUEST_TIMEOUT_MS, type World } from "./world.ts";

export interface Sender {
  readonly instanceId: string;
  readonly name: string;
  /** The machine: cut off from the store until then, as it is at the moment of asking. */
  readonly machine: { readonly cutOffUntilMs: number };
}

const LATE_MS = 9_000;

/** Carries a request to the store and the answer back, or not, or late, or twice. `answer` is called exactly once. */
export function carry(world: World, sender: Sender, request: StoreRequest, answer: (reply: Reply) => void): void {
  const { timeline, weather, ledger } = world;
  const writes = request.kind === "swap-head" || request.kind === "swap-record";
  let open = true;
  const reply = (result: Reply): void => {
    if (!open) return;
    open = false;
    if (result.outcome === "ambiguous") ledger.tally.ambiguous++;
    answer(result);
  };
  timeline.after(REQUEST_TIMEOUT_MS, () => {
    // Nearly all have been answered by then: an error, with its stack, is made only for those that have not.
    if (!open) return;
    reply(writes ? { outcome: "ambiguous" } : { outcome: "failed", error: new Error("no answer"), permanent: false });
  });
  world.onRequest(request.kind);
  const back = weather.between(1, 40) * world.slowness;
  // Every request draws as often, whatever becomes of it.
  const dice = weather.next();
  const there = weather.between(1, 40) * world.slowness;
  const long = weather.next() * LATE_MS;
  const isCutOff = (): boolean => timeline.nowMs < sender.machine.cutOffUntilMs;
  const arrive = (): void => {
    takeEffect(world, sender.instanceId, request, (result) => {
      if (!isCutOff()) timeline.after(back, () => reply(result));
    });
  };
  if (isCutOff()) return;
  const fault = world.faulty ? faultOf(dice) : undefined;
  const what = (): string => `${request.kind} of ${sender.name}`;
  if (fault === undefined || !world.plan.allows(fault, timeline.nowMs, what)) return timeline.after(there, arrive);
  switch (fault) {
    case "lost request":
      return;
    case "lost reply":
      return timeline.after(there, () => takeEffect(world, sender.instanceId, request, () => {}));
    case "delay":
      return timeline.after(there + long, arrive);
    case "duplicate":
      timeline.after(there, arrive);
      return timeline.after(there + long, () => takeEffect(world, sender.instanceId, request, () => {}));
    case "store failure":
      return timeline.after(there, () =>
        reply({ outcome: "failed", error: new Error("the store is busy"), permanent: false }),
      );
  }
}

function faultOf(dice: number): "lost request" | "lost reply" | "delay" | "duplicate" | "store failure" | undefined {
  if (dice < 0.02) return "lost request";
  if (dice < 0.045) return "lost reply";
  if (dice < 0.075) return "delay";
  if (dice < 0.09) return "duplicate";
  if (dice < 0.1) return "store failure";
  return undefined;
}

/** The moment at which the store does what it was asked for; some bugs are here. */
function takeEffect(world: World, writer: string, request: StoreRequest, then: (reply: Reply) => void): void {
  const { bug, store, timeline, weather } = world;
  if (request.kind === "swap-record" && isTombstoneOfAnother(request, writer) && bug === "no-tombstone") {
    world.takenForDead.add(request.instanceId);
    return then({ outcome: "written", version: "none" });
  }
  if (request.kind !== "swap-head") return then(store.apply(request, writer));
  const { sandboxId, next } = request;
  const present = store.heads.get(sandboxId);
  const publishes = next.checkpoint?.name !== present?.body.checkpoint?.name && next.state !== "deleted";
  if (bug === "plain-put" && publishes) return then(store.putHead(sandboxId, next, writer));
  if (bug === "check-then-put" && publishes) {
    if (present?.version !== request.expected) return then({ outcome: "conflict" });
    return timeline.after(weather.between(5, 50), () => then(store.putHead(sandboxId, next, writer)));
  }
  const reply = store.apply(request, writer);
  if (bug === "no-head-tombstone" && reply.outcome === "written" && next.state === "deleted") {
    store.heads.delete(sandboxId);
  }
  then(reply);
}

function isTombstoneOfAnother(request: StoreRequest & { kind: "swap-record" }, writer: string): boolean {
  return request.next.dead === true && request.instanceId !== writer;
}
