import { z } from "zod";
import { timestampSchema } from "./common.ts";

/**
 * The result for an image. `damaged`: some of its data is. `unreadable`: its contents are unknown. `missing`: a head or
 * a record references it, but it does not exist. `locked`: it is encrypted, and the server does not have its key.
 */
export const IMAGE_VERDICTS = ["whole", "damaged", "unreadable", "missing", "locked"] as const;

const count = z.number().int().nonnegative();

const imageProblemSchema = z.object({
  image: z.string().meta({ description: "Name in the store." }),
  state: z.enum(IMAGE_VERDICTS).exclude(["whole"]),
  problem: z.string(),
  /** The sandbox whose state it is, or was. */
  sandbox_id: z.string().nullable(),
  checkpoint: z.string().nullable(),
  snapshot_id: z.string().nullable(),
  current: z.boolean().meta({ description: "The sandbox resumes from this image." }),
});
export type ImageProblemRecord = z.infer<typeof imageProblemSchema>;

/** A checkpoint whose test restore succeeded. */
export const provenCheckpointSchema = z
  .object({
    sandbox_id: z.string(),
    checkpoint: z.string(),
    proven: z.object({ at: timestampSchema, engine: z.string() }),
  })
  .meta({ id: "ProvenCheckpoint" });
export type ProvenCheckpoint = z.infer<typeof provenCheckpointSchema>;

export const integrityReportSchema = z
  .object({
    ok: z.boolean().meta({ description: "Nothing is damaged, unreadable or missing." }),
    started_at: timestampSchema,
    ended_at: timestampSchema,
    images: z.object({ whole: count, damaged: count, unreadable: count, missing: count, locked: count }),
    blocks: count.meta({ description: "Blocks that were read. A block that several images share is read once." }),
    bytes: count.meta({ description: "Bytes that were read from the store." }),
    problems: z.array(imageProblemSchema).meta({ description: "Every image with a problem." }),
    damaged_blocks: z.array(
      z.object({
        pack: z.string().nullable().meta({ description: "null: the block is in the image itself." }),
        offset: count,
        size_bytes: count,
        problem: z.string(),
        images: z
          .array(z.string())
          .meta({ description: "All images that need the block, including images that store a difference to it." }),
      }),
    ),
    missing_packs: z.array(z.object({ pack: z.string(), images: z.array(z.string()) })),
    unnamed_packs: z.object({ count, bytes: count }).nullable().meta({
      description:
        "Packs that no image references: garbage, or parts of a save in progress. null if only some images were checked.",
    }),
    damaged_block_count: count,
    truncated: z.boolean().meta({ description: "The lists are truncated; there is more damage." }),
    next_step: z.string().nullable().meta({ description: "How to repair the damage." }),
  })
  .meta({ id: "IntegrityReport" });
export type IntegrityReport = z.infer<typeof integrityReportSchema>;

export const scrubStatusSchema = z
  .object({
    running: z.boolean(),
    paused: z.boolean().meta({ description: "A scrub was stopped; the next one continues where it stopped." }),
    done_bytes: count,
    every_seconds: z.number().nullable().meta({ description: "Interval of automatic scrubs in seconds; null: never." }),
    rate_mb: z.number().nullable().meta({ description: "Read at most this many MB per second; null: no limit." }),
    last_full_pass_at: timestampSchema.nullable().meta({ description: "Last full pass of any server of the store." }),
    last: integrityReportSchema.nullable().meta({ description: "Result of the last full pass of this server." }),
  })
  .meta({ id: "ScrubStatus" });
export type ScrubStatus = z.infer<typeof scrubStatusSchema>;
