import { checkpointReferenceSchema } from "@sandboxer/protocol";
import { z } from "zod";

/** `{data}/unpublished/{folder}/{sandbox_id}/checkpoint.json`, which is written last. */
export const unpublishedSchema = z.looseObject({
  format: z.literal(1),
  sandbox_id: z.string().min(1),
  /** The address of the store that it is for. */
  store: z.string().min(1),
  /** The owner of the sandbox when this was captured, or the server that claimed it since in order to publish this. */
  owner: z.looseObject({ instance_id: z.string().min(1), epoch: z.number().int().positive() }),
  /** A server that was about to claim the sandbox in order to publish this. */
  claiming: z.string().nullable().default(null),
  /** The checkpoint that the head named then, and must still name. */
  replaces: z.string().nullable(),
  checkpoint: checkpointReferenceSchema,
  /** Why it will not be published; absent: it will. */
  set_aside: z.looseObject({ at: z.string(), reason: z.string() }).optional(),
});

export type UnpublishedRecord = z.infer<typeof unpublishedSchema>;
