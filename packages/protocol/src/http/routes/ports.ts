import { z } from "zod";
import { portSchema } from "../../port.ts";
import { durationSchema, timestampSchema } from "../common.ts";
import { route } from "../route.ts";
import { sandboxParams } from "./sandboxes.ts";

const tag = "ports";

/** A WebSocket whose binary messages are the bytes of one TCP connection to a port inside. */
export const PORT_CONNECT_PATH = "/v1/sandboxes/{id}/connect/{port}";

const listeningPortSchema = z
  .object({
    port: portSchema,
    address: z.string().meta({ description: "The address inside that the program listens on." }),
    process: z
      .object({ pid: z.number().int(), command: z.string() })
      .nullable()
      .meta({ description: "The process that listens. null: unknown." }),
    public: z.boolean().meta({ description: "Whether anyone may open the URL." }),
    url: z.string().meta({ description: "Where a browser opens the port." }),
  })
  .meta({ id: "ListeningPort" });

const portLinkSchema = z
  .object({
    url: z.string(),
    expires_at: timestampSchema.nullable().meta({ description: "null: the port is public, and the URL has no end." }),
  })
  .meta({ id: "PortLink" });
export type PortLink = z.infer<typeof portLinkSchema>;

export const PORT_ROUTES = {
  listPorts: route({
    method: "GET",
    path: "/v1/sandboxes/{id}/ports",
    summary: "List the ports on which programs inside a sandbox listen.",
    tag,
    scope: "read",
    params: sandboxParams,
    status: 200,
    response: z.object({ items: z.array(listeningPortSchema) }).meta({ id: "ListeningPorts" }),
  }),
  createPortLink: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/port-links",
    summary: "Get a URL that opens a port of a sandbox without a key, until it expires.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z.strictObject({
      port: portSchema,
      expires: durationSchema.default("1h").meta({ description: "How long the URL works, up to 30 days." }),
    }),
    status: 200,
    response: portLinkSchema,
  }),
  withdrawPortLinks: route({
    method: "DELETE",
    path: "/v1/sandboxes/{id}/port-links",
    summary: "Withdraw all signed URLs of a port of a sandbox, and the cookies of browsers that opened one.",
    tag,
    scope: "use",
    params: sandboxParams,
    query: z.object({ port: z.coerce.number().pipe(portSchema) }),
    status: 204,
  }),
} as const;
