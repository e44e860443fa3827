import { type Route, type RouteName, ROUTES, SandboxerError } from "@sandboxer/protocol";
import type { Operation } from "../../manager/observing/operations/operation.ts";
import type { Call, Handler, Service } from "./handler.ts";
import { IdempotentCalls } from "./idempotency.ts";
import { digestOf, onceForAll } from "./shared-calls.ts";
import { routeSubject } from "./route-subject.ts";

/** A call in progress. */
export interface Begun {
  /** Its record, for routes that have one; ends with the call. */
  readonly operation: Operation | undefined;
  readonly result: Promise<unknown>;
}

/** How a call ended. */
export interface Outcome {
  readonly answer?: unknown;
  readonly error?: unknown;
  /** The epoch of the path's sandbox before the call, if this server owned it. */
  readonly epoch?: number | undefined;
  readonly operation?: Operation | undefined;
}

/** Called at the end of every call that may have changed something. */
export type OnMutation = (name: RouteName, call: Call<Route>, outcome: Outcome) => void;

export type BeginCall = (service: Service, name: RouteName, call: Call<Route>) => Promise<Begun>;

/**
 * Starts calls. A call that changes something is started once per `Idempotency-Key` and reported at its end; a repeated
 * one gets the result and operation of the first, and is not reported again.
 */
export function callBeginner(onMutation: OnMutation): BeginCall {
  const calls = new IdempotentCalls<Begun>(() => performance.now());
  return async (service, name, call) => {
    const route: Route = ROUTES[name];
    if (route.method === "GET") return perform(service, name, call);
    const { sandboxId } = routeSubject(route, call.params);
    const epoch = sandboxId === undefined ? undefined : service.epochOf(sandboxId);
    const failed = (error: unknown, operation?: Operation): never => {
      onMutation(name, call, { error, epoch, operation });
      throw error;
    };
    const performAndTell = (): Begun => {
      const { operation, result } = perform(service, name, call);
      const told = result.then(
        (answer) => (onMutation(name, call, { answer, epoch, operation }), answer),
        (error: unknown) => failed(error, operation),
      );
      return { operation, result: told };
    };
    const { idempotencyKey: key, caller, params, query, body } = call;
    if (key === undefined || route.idempotent !== true || route.rememberedBySandbox === true) return performAndTell();
    const identity = JSON.stringify([caller.id, name, key]);
    const requestDigest = digestOf({ params, query, body });
    const shared = { identity, requestDigest, credential: caller.authorization, signal: call.signal };
    try {
      return await calls.once(identity, requestDigest, () =>
        onceForAll(service, shared, performAndTell, answeredElsewhere),
      );
    } catch (error) {
      return failed(error);
    }
  };
}

/** By another server, so that it has no operation here. */
function answeredElsewhere(answer: unknown): Begun {
  return { operation: undefined, result: Promise.resolve(answer) };
}

/** Opens the operation, if the route has one, and runs the handler. */
function perform(service: Service, name: RouteName, call: Call<Route>): Begun {
  const route: Route = ROUTES[name];
  const handler = service.handlers[name] as Handler<Route>;
  const subject = routeSubject(route, call.params);
  const begin = async (begun: Call<Route>): Promise<unknown> => {
    const { placement } = service;
    const mayPlace = placement !== undefined && begun.placeable !== undefined;
    try {
      return await handler(mayPlace ? { ...begun, options: { ...begun.options, mayPlace } } : begun);
    } catch (error) {
      const said = await nowSaidOf(service, subject.sandboxId, error);
      if (placement === undefined) throw said;
      return (await placement.elsewhere(name, begun, said)) ?? (await handler(begun));
    }
  };
  if (route.operation === undefined) return { operation: undefined, result: begin(call) };
  const operation = service.openOperation(route.operation, subject, call.caller.id);
  const tenant = call.caller.principal.id;
  return { operation, result: carryOut(begin, { ...call, options: { ...call.options, operation, tenant } }) };
}

/** A call that was in progress when its sandbox was paused or handed off gets the same error as a new call would. */
async function nowSaidOf(service: Service, sandboxId: string | undefined, error: unknown): Promise<unknown> {
  const wasLeft = error instanceof SandboxerError && error.details["ended"] === "destroyed";
  return wasLeft && sandboxId !== undefined ? ((await service.whyNotHere(sandboxId)) ?? error) : error;
}

/** The operation ends with the handler. */
async function carryOut(handler: (call: Call<Route>) => Promise<unknown>, call: Call<Route>): Promise<unknown> {
  const { operation } = call.options;
  try {
    const result = await handler(call);
    operation?.finish({ result });
    return result;
  } catch (error) {
    operation?.finish({ error });
    throw error;
  }
}
