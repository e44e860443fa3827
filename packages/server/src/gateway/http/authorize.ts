import type { IncomingMessage } from "node:http";
import { type Route, type RouteName, ROUTES } from "@sandboxer/protocol";
import type { AccessGate } from "../access/access-gate.ts";
import { Actor } from "../access/actor.ts";
import type { AuditLog } from "../access/audit-log.ts";
import { requireScope } from "../access/principal.ts";
import type { Caller } from "./handler.ts";

/** Identifies and authorizes the caller before anything of the request is processed. */
export function authorizer(gate: AccessGate, audit: AuditLog): (request: IncomingMessage, name: RouteName) => Caller {
  return (message, name) => {
    const route: Route = ROUTES[name];
    const request = gate.requestOf(message);
    const address = request.remoteAddress;
    const principal = gate.admit(request);
    if (route.method === "GET") requireScope(principal, route.scope);
    else new Actor(principal, audit, address).require(route.scope, name);
    const scope = principal.scopes.at(-1) ?? route.scope;
    const key = gate.authenticator.keyOf(request);
    const authorization = key === undefined ? undefined : `Bearer ${key}`;
    return { principal, id: principal.id, scope, address, authorization };
  };
}
