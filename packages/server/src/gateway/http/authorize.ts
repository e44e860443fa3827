import type { IncomingMessage } from "node:http";
import { type Route, SandboxerError } from "@sandboxer/protocol";
import { browserRefusal, isTrusted, type AccessRules } from "../access.ts";
import type { Caller } from "./handler.ts";

/** Decides who calls, before anything of the request is looked at. */
export function authorizer(rules: AccessRules): (request: IncomingMessage, route: Route) => Caller {
  return (request) => {
    const refusal = browserRefusal(request, rules);
    if (refusal !== undefined) throw new SandboxerError("permission_denied", refusal);
    if (!isTrusted(request, rules)) throw new SandboxerError("unauthorized", "A key of the server is needed.");
    return { id: "key", scope: "admin", authorization: request.headers.authorization };
  };
}
