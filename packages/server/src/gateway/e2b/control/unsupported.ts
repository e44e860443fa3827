import type { FastifyInstance } from "fastify";
import { clientOf, pathOf } from "../e2b-client.ts";
import type { E2bServices } from "../e2b-services.ts";
import { E2bError, sendE2bError } from "../errors.ts";

const BUILDS = "Templates are not built here: use a profile, a container image or a snapshot as the template.";

/** Parts of E2B's API that this server knows and does not have, and what to use instead. */
const UNSUPPORTED: readonly (readonly [prefix: RegExp, message: string])[] = [
  [/^\/(v\d+\/)?templates(\/|$)/, BUILDS],
  [/^\/volumes(\/|$)/, "This server has no volumes."],
  [/^\/volumecontent(\/|$)/, "This server has no volumes."],
  [/^\/secrets(\/|$)/, "This server's secrets belong to profiles (docs/guides/profiles.md)."],
  [/^\/(teams|api-keys|access-tokens|iam|nodes|admin)(\/|$)/, "This server manages keys with `sandboxer keys`."],
  [
    /^\/(v\d+\/)?sandboxes\/[^/]+\/logs(\/|$)/,
    "This server keeps no logs of sandboxes in E2B's form; see `sandboxer logs`.",
  ],
  [/^\/sandboxes\/metrics(\/|$)/, "Ask for the metrics of one sandbox."],
];

/** Unknown routes are logged with the client's version: E2B's clients have changed then. */
export function registerUnsupported(app: FastifyInstance, services: E2bServices): void {
  // Before anything of a body is read.
  app.addHook("onRequest", async (request) => {
    if (request.is404) services.authorize(request.raw, "read", "e2b");
  });
  app.setNotFoundHandler((request, reply) => {
    const path = pathOf(request).slice(app.prefix.length);
    const [, message] = UNSUPPORTED.find(([prefix]) => prefix.test(path)) ?? [];
    if (message !== undefined) return sendE2bError(new E2bError(501, message), reply);
    services.log.warn({ ...clientOf(request), method: request.method, path }, "unknown route of E2B");
    return sendE2bError(new E2bError(404, `This server does not know ${request.method} ${path}.`), reply);
  });
}
