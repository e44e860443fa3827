import { z } from "zod";
import { networkPolicySchema } from "../network/policy.ts";
import { timestampSchema } from "./common.ts";

/** One kind of connection that a rule forbade. */
export const refusedConnectionSchema = z
  .object({
    name: z.string().meta({ description: "The host, as the program asked for it." }),
    port: z.number().int(),
    address: z.string().nullable().meta({ description: "null: the name was not resolved." }),
    rule: z.string().meta({ description: "Why, such as: not in allow; deny *.example.com; private address." }),
    count: z.number().int(),
    first_at: timestampSchema,
    last_at: timestampSchema,
  })
  .meta({ id: "RefusedConnection" });
export type RefusedConnection = z.infer<typeof refusedConnectionSchema>;

export const sandboxNetworkSchema = z
  .object({
    policy: networkPolicySchema,
    way: z.enum(["none", "proxy", "own"]).nullable().meta({
      description:
        "How it reaches the network: through the server's proxy, or by a network of its own. null: it is paused.",
    }),
    open_connections: z.number().int().nullable().meta({ description: "null: they do not go through the server." }),
    sent_bytes: z.number().int().nullable(),
    received_bytes: z.number().int().nullable(),
    refused_total: z.number().int(),
    refused: z
      .array(refusedConnectionSchema)
      .meta({ description: "Newest first, as far as this server knows; at most 200 kinds." }),
  })
  .meta({ id: "SandboxNetwork" });
export type SandboxNetworkRecord = z.infer<typeof sandboxNetworkSchema>;
