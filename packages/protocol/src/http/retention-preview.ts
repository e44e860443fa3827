import { z } from "zod";
import { KEEP_HINT, parseKeep } from "../keep-text.ts";
import { retentionSchema } from "../retention.ts";
import { timestampSchema } from "./common.ts";

/** Instead of a rule: as the server says. */
export const AS_SERVER_SAYS = "server";

/** A rule that is only looked at. It stays a text, because it comes in an address. */
export const previewedKeepSchema = z
  .string()
  .refine((text) => text === AS_SERVER_SAYS || parseKeep(text) !== undefined, `is no rule. ${KEEP_HINT}`)
  .meta({ description: `${KEEP_HINT} \`${AS_SERVER_SAYS}\`: as the server says.`, examples: ["last=3,daily=7"] });

const count = z.number().int().nonnegative();

const savedStateSchema = z.object({
  name: z.string().meta({ description: "Of a checkpoint; the id of a snapshot." }),
  created_at: timestampSchema,
});

/** What a rule of retention would do to a sandbox's saved states. */
export const retentionPreviewSchema = z
  .object({
    retention: retentionSchema.meta({ description: "The rules that were looked at, the server's where none is said." }),
    checkpoints: z.object({ kept: count, going: z.array(savedStateSchema) }),
    snapshots: z.object({
      kept: count.meta({ description: "All that stay: by the rule, or for one of the reasons below." }),
      named: count.meta({ description: "Those that stay because they have a name." }),
      pinned: count,
      in_use: count.meta({ description: "Too old, and needed by a sandbox that began with one." }),
      going: z.array(savedStateSchema),
    }),
    freed_bytes: count.meta({
      description: "What the store would have less: the images, and blocks that nothing else needs.",
    }),
  })
  .meta({ id: "RetentionPreview" });
export type RetentionPreview = z.infer<typeof retentionPreviewSchema>;
