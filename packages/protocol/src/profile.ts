import { z } from "zod";
import { environmentSchema, resourcesSchema, userSchema } from "./creation-message.ts";
import { tryParseDurationMs } from "./duration.ts";
import { affinitySchema } from "./http/affinity.ts";
import { onExpirySchema, durationSchema, labelsSchema, restartSchema } from "./http/common.ts";
import { maxLossSchema } from "./max-loss.ts";
import { networkSettingSchema } from "./network/policy.ts";
import { retentionSchema } from "./retention.ts";

/** How a profile with several backends picks one. */
export const STRATEGIES = ["explicit", "prefer-self-hosted", "lowest-cost"] as const;
export type Strategy = (typeof STRATEGIES)[number];

const nameSchema = z
  .string()
  .max(128)
  .regex(/^[a-z0-9]+([.-][a-z0-9]+)*$/, "must be lower-case words joined by dots and dashes, such as profile.my-team");

/** Extensions are called `ext.NAME`. */
export const backendNameSchema = z
  .string()
  .max(64)
  .regex(/^[a-z][a-z0-9-]*(\.[a-z0-9-]+)*$/, "must be the name of a backend, such as gvisor or ext.mine");

const inputNameSchema = z
  .string()
  .regex(
    /^[A-Za-z][A-Za-z0-9_-]{0,127}$/,
    "must begin with a letter and have only letters, digits, dashes and underscores",
  );

export const secretNameSchema = z
  .string()
  .regex(
    /^[a-z][a-z0-9_-]{0,63}$/,
    "must be the name of a secret of the server's config file: lower-case letters, digits, dashes and underscores",
  );

/** A named value that the caller provides. */
const inputSchema = z
  .strictObject({
    description: z.string().max(1024).optional(),
    required: z.boolean().optional(),
    default: z.string().max(65_536).optional(),
  })
  .refine((input) => input.required !== true || input.default === undefined, {
    path: ["required"],
    message: "has no effect with a default, because an input with a default is never missing. Remove one of them.",
  });

const ttlSchema = z
  .strictObject({
    /** For requests without one. */
    default: durationSchema.optional(),
    /** The maximum. */
    max: durationSchema.optional(),
    /** Without a client and without work for this long. */
    idle: durationSchema.optional(),
    /** For requests without one. */
    on_expiry: onExpirySchema.optional(),
  })
  .refine((ttl) => !isLonger(ttl.default, ttl.max), { path: ["default"], message: "is longer than ttl.max." });

/** A profile as in its file: the settings of sandboxes that name it, unless the request overrides them. */
export const profileSchema = z
  .strictObject({
    name: nameSchema,
    description: z.string().max(4096).optional(),
    /** `ext.compose-ssh`; instead of `backends`. */
    extension: z
      .string()
      .regex(/^ext\.[a-z0-9]+([.-][a-z0-9]+)*$/, "must be ext. and a name, such as ext.compose-ssh")
      .optional(),
    backends: z.array(backendNameSchema).min(1).max(32).optional(),
    strategy: z.enum(STRATEGIES).optional(),
    isolation: z.enum(["gvisor", "container", "virtual-machine", "remote-host", "none"]).optional(),
    network: networkSettingSchema.optional(),
    ttl: ttlSchema.optional(),
    resources: z.strictObject(resourcesSchema.shape).optional(),
    image: z.string().min(1).max(4096).optional(),
    /** The user of programs and files inside. */
    user: userSchema.optional(),
    env: environmentSchema.optional(),
    inputs: z.record(inputNameSchema, inputSchema).optional(),
    /** Run once in the new sandbox, in this order. */
    setup: z.array(z.string().min(1).max(65_536)).max(256).optional(),
    /** Variables inside, and the names of their secrets. */
    secret_refs: z.record(environmentSchema.keyType, secretNameSchema).optional(),
    placement: z.record(z.string().min(1).max(64), z.string().max(4096)).optional(),
    labels: labelsSchema.optional(),
    enable_checkpoint: z.boolean().optional(),
    enable_idle_timeout_auto_checkpoint: z.boolean().optional(),
    enable_sandbox_handoff: z.boolean().optional(),
    on_disconnect: z.enum(["keep", "checkpoint"]).optional(),
    /** For requests without one. */
    max_loss: maxLossSchema.optional(),
    restart: restartSchema.optional(),
    /** For requests without one. */
    affinity: affinitySchema.optional(),
    retention: retentionSchema.optional(),
  })
  .refine(({ extension, backends }) => (extension === undefined) !== (backends === undefined), {
    path: ["backends"],
    message: "needs exactly one of extension and backends.",
    when: isObject,
  })
  .refine(({ extension, strategy }) => extension === undefined || strategy === undefined, {
    path: ["strategy"],
    message: "chooses between backends, and an extension is a single backend. Remove it.",
    when: isObject,
  })
  .superRefine((profile, context) => {
    for (const name of Object.keys(profile.secret_refs ?? {})) {
      if (!Object.hasOwn(profile.env ?? {}, name)) continue;
      context.addIssue({ code: "custom", path: ["secret_refs", name], message: "is also in env; remove one of them." });
    }
    if (new Set(profile.backends).size !== (profile.backends ?? []).length) {
      context.addIssue({ code: "custom", path: ["backends"], message: "name each backend once." });
    }
    if (profile.enable_checkpoint === true) return;
    const dependent = {
      enable_sandbox_handoff: profile.enable_sandbox_handoff === true,
      enable_idle_timeout_auto_checkpoint: profile.enable_idle_timeout_auto_checkpoint === true,
      on_disconnect: profile.on_disconnect === "checkpoint",
      max_loss: profile.max_loss !== undefined,
      restart: profile.restart === "always",
    };
    for (const [key, needs] of Object.entries(dependent)) {
      if (needs) context.addIssue({ code: "custom", path: [key], message: "needs enable_checkpoint: true." });
    }
  });
export type Profile = z.infer<typeof profileSchema>;

function isLonger(first: string | undefined, second: string | undefined): boolean {
  const [firstMs, secondMs] = [first, second].map((text) =>
    text === undefined ? undefined : tryParseDurationMs(text),
  );
  return firstMs !== undefined && secondMs !== undefined && firstMs > secondMs;
}

/** Reports both problems of a profile, not only the first. */
function isObject({ value }: { readonly value: unknown }): boolean {
  return typeof value === "object" && value !== null;
}
