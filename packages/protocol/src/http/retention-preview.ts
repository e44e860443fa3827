import { z } from "zod";
import { KEEP_HINT, parseKeep } from "../keep-text.ts";
import { retentionSchema } from "../retention.ts";
import { timestampSchema } from "./common.ts";

/** Instead of a rule: the server's default. */
export const AS_SERVER_SAYS = "server";

/** A rule to preview. It stays a text, because it is part of a URL. */
export const previewedKeepSchema = z
  .string()
  .refine((text) => text === AS_SERVER_SAYS || parseKeep(text) !== undefined, `is not a retention rule. ${KEEP_HINT}`)
  .meta({ description: `${KEEP_HINT} \`${AS_SERVER_SAYS}\`: the server's default.`, examples: ["last=3,daily=7"] });

const count = z.number().int().nonnegative();

const savedStateSchema = z.object({
  name: z.string().meta({ description: "Name of the checkpoint, or id of the snapshot." }),
  created_at: timestampSchema,
});

/** The effect of a retention rule on a sandbox's saved states. */
export const retentionPreviewSchema = z
  .object({
    retention: retentionSchema.meta({ description: "The rules that were applied; the server's where none is given." }),
    checkpoints: z.object({ kept: count, going: z.array(savedStateSchema) }),
    snapshots: z.object({
      kept: count.meta({ description: "Number kept: by the rule, or for one of the reasons below." }),
      named: count.meta({ description: "Number kept because they have a name." }),
      pinned: count,
      in_use: count.meta({ description: "Number beyond the rule but needed by a sandbox that was created from them." }),
      going: z.array(savedStateSchema),
    }),
    freed_bytes: count.meta({
      description: "Bytes that would be freed: the images, and blocks that nothing else needs.",
    }),
  })
  .meta({ id: "RetentionPreview" });
export type RetentionPreview = z.infer<typeof retentionPreviewSchema>;
