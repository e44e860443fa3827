import { z } from "zod";
import { environmentSchema, resourcesSchema, userSchema } from "../creation-message.ts";
import { maxLossSchema } from "../max-loss.ts";
import { portsSchema } from "../port.ts";
import { networkSettingSchema } from "../network/policy.ts";
import { retentionSchema } from "../retention.ts";
import { affinitySchema } from "./affinity.ts";
import { durationSchema, inputsSchema, labelsSchema, nameSchema, onExpirySchema, restartSchema } from "./common.ts";

/** Seconds, as over WebSocket, or a duration such as `15m`. */
const idleTimeoutSchema = z.union([z.number().finite().nonnegative().max(315_360_000), durationSchema]);

/** Chosen by its user, to find a sandbox again: a conversation, a branch, a build. */
export const keySchema = z.string().min(1).max(256);

/**
 * The body of `POST /v1/sandboxes`. Missing fields come from the profile, then from the server: by default, a server
 * with a store creates sandboxes that can be saved, moved and resumed.
 */
export const createRequestSchema = z
  .strictObject({
    name: nameSchema.optional(),
    profile: z.string().min(1).max(128).optional(),
    backend: z.string().min(1).max(64).optional(),
    image: z.string().min(1).max(4096).optional(),
    user: userSchema.optional().meta({
      description: "User of its programs and files: NAME, UID, NAME:GROUP. Default: the image's user, then uid 1000.",
    }),
    inputs: inputsSchema.optional(),
    env: environmentSchema.optional(),
    labels: labelsSchema.optional(),
    key: keySchema.optional().meta({ description: "Key to find the sandbox again; see the acquire operation." }),
    ttl: durationSchema.optional(),
    on_expiry: onExpirySchema.optional(),
    idle_timeout: idleTimeoutSchema.optional(),
    resources: resourcesSchema.optional(),
    network: networkSettingSchema.optional(),
    enable_checkpoint: z.boolean().optional(),
    enable_idle_timeout_auto_checkpoint: z.boolean().optional(),
    enable_sandbox_handoff: z.boolean().optional(),
    on_disconnect: z.enum(["keep", "checkpoint"]).optional(),
    max_loss: maxLossSchema.nullable().optional().meta({ description: "null: no limit is promised." }),
    restart: restartSchema.optional(),
    affinity: affinitySchema.optional(),
    retention: retentionSchema.nullable().optional().meta({ description: "null: the server's default." }),
    filesystem_snapshot_name: z.string().min(1).max(128).optional(),
    public_ports: portsSchema
      .optional()
      .meta({ description: "Ports whose preview URL anyone may open. Default: none; a preview is private." }),
    entrypoint: z
      .boolean()
      .optional()
      .meta({ description: "Start the image's entrypoint and command as a detached process. Default: false." }),
  })
  .meta({ id: "CreateSandbox" });
export type CreateRequestBody = z.infer<typeof createRequestSchema>;

/** Settings of a sandbox that starts from a saved state. */
export const restoreRequestSchema = z
  .strictObject({
    name: nameSchema.optional(),
    labels: labelsSchema.optional(),
    ttl: durationSchema.optional(),
    on_expiry: onExpirySchema.optional(),
    idle_timeout: idleTimeoutSchema.optional(),
    max_loss: maxLossSchema.nullable().optional().meta({ description: "null: no limit is promised." }),
    restart: restartSchema.optional(),
    affinity: affinitySchema.optional().meta({ description: "Default: that of the captured sandbox." }),
    retention: retentionSchema.nullable().optional().meta({ description: "null: the server's default." }),
    env: environmentSchema.optional(),
    inputs: inputsSchema.optional(),
    profile: z.string().min(1).max(128).optional().meta({
      description: "Profile whose placement and secrets are used. Default: those of the captured sandbox.",
    }),
    backend: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .meta({ description: "Default: the backend that it was captured on." }),
    image: z.string().min(1).max(4096).nullable().optional().meta({
      description:
        "Only for a portable (workspace) snapshot. Default: the captured sandbox's image; null: the backend's default.",
    }),
  })
  .meta({ id: "RestoreSnapshot" });
export type RestoreRequestBody = z.infer<typeof restoreRequestSchema>;
