import type { FastifyInstance } from "fastify";
import type { E2bServices } from "../e2b-services.ts";
import { E2bError } from "../errors.ts";
import { controlRoute } from "./control-route.ts";
import { builtInTemplates, findTemplate, templateView } from "./templates.ts";

/** Reads of templates. They are made elsewhere: as profiles, images and snapshots. */
export function registerTemplates(app: FastifyInstance, services: E2bServices): void {
  const read = { method: "GET", scope: "read", what: "listProfiles" } as const;
  controlRoute(app, services, { ...read, url: "/templates/aliases/:alias" }, async ({ request, reply }) => {
    const { alias = "" } = request.params as { readonly alias?: string };
    const template = await findTemplate(services.manager, alias);
    // Whether an image exists is only known when it is pulled.
    if (template.kind === "fresh" && template.request.image !== undefined) {
      throw new E2bError(404, `There is no template ${JSON.stringify(alias.slice(0, 200))}.`);
    }
    return reply.send({ templateID: template.id, public: false });
  });
  for (const url of ["/templates", "/v2/templates"]) {
    controlRoute(app, services, { ...read, url }, async ({ reply }) => {
      const { manager } = services;
      return reply.send([...builtInTemplates(manager), ...manager.profiles.list()].map(templateView));
    });
  }
}
