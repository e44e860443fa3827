import { ROUTES, type Route, type RouteName } from "@sandboxer/protocol";
import type { FastifyRequest } from "fastify";
import { serverOfOperation } from "../../manager/observing/operations/operation-id.ts";

/** Routes that work everywhere, or are about the server that is called. */
const NEVER_RELAYED: ReadonlySet<RouteName> = new Set<RouteName>([
  "getSandbox",
  "destroySandbox",
  "resumeSandbox",
  "createPortLink",
]);

/** Lists that are about one sandbox if the query names it. */
const OF_A_SANDBOX: ReadonlySet<RouteName> = new Set<RouteName>(["events", "listOperations"]);

/** Whether every server answers the call, but only the owner knows all of it. */
export function isList(name: RouteName): boolean {
  return OF_A_SANDBOX.has(name);
}

/** The server that answers a call: the owner of a sandbox, or the server that runs an operation. */
export type RelayTarget = { readonly sandboxId: string } | { readonly instanceId: string };

/** Undefined: the server that is called answers. Runs before the call is checked. */
export function relayTarget(name: RouteName, request: FastifyRequest): RelayTarget | undefined {
  const { id = "" } = request.params as { readonly id?: string };
  if (name === "getOperation") {
    const instanceId = serverOfOperation(id);
    return instanceId === undefined ? undefined : { instanceId };
  }
  if (OF_A_SANDBOX.has(name)) {
    const { sandbox_id: sandboxId } = request.query as { readonly sandbox_id?: unknown };
    return typeof sandboxId === "string" && sandboxId !== "" ? { sandboxId } : undefined;
  }
  const { path }: Route = ROUTES[name];
  const isRelayed = /^\/v1\/sandboxes\/\{id\}(\/|$)/.test(path) && !NEVER_RELAYED.has(name);
  return isRelayed ? { sandboxId: id } : undefined;
}
