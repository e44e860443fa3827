import { checkpointReferenceSchema } from "@sandboxer/protocol";
import { z } from "zod";

/** `{data}/unpublished/{folder}/{sandbox_id}/checkpoint.json`, which is written when all else is there. */
export const unpublishedSchema = z.looseObject({
  format: z.literal(1),
  sandbox_id: z.string().min(1),
  /** The address of the store that it is for. */
  store: z.string().min(1),
  /** Who owned the sandbox when this was captured, or has claimed it since in order to publish this. */
  owner: z.looseObject({ instance_id: z.string().min(1), epoch: z.number().int().positive() }),
  /** A server that was about to claim the sandbox in order to publish this. */
  claiming: z.string().nullable().default(null),
  /** The checkpoint that the head named then, and has to name still. */
  replaces: z.string().nullable(),
  checkpoint: checkpointReferenceSchema,
  /** Why it is not going to be published; absent: it is. */
  set_aside: z.looseObject({ at: z.string(), reason: z.string() }).optional(),
});

export type UnpublishedRecord = z.infer<typeof unpublishedSchema>;
