import { z } from "zod";
import { timestampSchema } from "./common.ts";

/**
 * What a look at an image found. `damaged`: some of what it is made of is. `unreadable`: nobody can tell what it is made
 * of. `missing`: a head or a record names it, and it is not there. `locked`: it is encrypted, and its key is not here.
 */
export const IMAGE_VERDICTS = ["whole", "damaged", "unreadable", "missing", "locked"] as const;

const count = z.number().int().nonnegative();

const imageProblemSchema = z.object({
  image: z.string().meta({ description: "Its name in the store." }),
  state: z.enum(IMAGE_VERDICTS).exclude(["whole"]),
  problem: z.string(),
  /** The sandbox whose state it is, or was. */
  sandbox_id: z.string().nullable(),
  checkpoint: z.string().nullable(),
  snapshot_id: z.string().nullable(),
  current: z.boolean().meta({ description: "The sandbox begins with it when it is woken." }),
});
export type ImageProblemRecord = z.infer<typeof imageProblemSchema>;

/** A checkpoint that was restored where nobody could reach it, and answered. */
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
    blocks: count.meta({ description: "Those that were read; one that several images share is read once." }),
    bytes: count.meta({ description: "What was read of the store." }),
    problems: z.array(imageProblemSchema).meta({ description: "Every image that something is wrong with." }),
    damaged_blocks: z.array(
      z.object({
        pack: z.string().nullable().meta({ description: "Null: it is in the image itself." }),
        offset: count,
        size_bytes: count,
        problem: z.string(),
        images: z.array(z.string()).meta({ description: "All that need it, also for differences." }),
      }),
    ),
    missing_packs: z.array(z.object({ pack: z.string(), images: z.array(z.string()) })),
    unnamed_packs: z
      .object({ count, bytes: count })
      .nullable()
      .meta({ description: "No image names them: garbage, or on their way in. Null where only some were looked at." }),
    damaged_block_count: count,
    truncated: z.boolean().meta({ description: "More is wrong than the lists have." }),
    next_step: z.string().nullable().meta({ description: "What to do about it." }),
  })
  .meta({ id: "IntegrityReport" });
export type IntegrityReport = z.infer<typeof integrityReportSchema>;

export const scrubStatusSchema = z
  .object({
    running: z.boolean(),
    paused: z.boolean().meta({ description: "One was stopped; the next one goes on where it was." }),
    done_bytes: count,
    every_seconds: z.number().nullable().meta({ description: "How often the server does it by itself; null: never." }),
    rate_mb: z.number().nullable().meta({ description: "At most so many MB in a second; null: no limit." }),
    last_full_pass_at: timestampSchema.nullable().meta({ description: "Of any server of the store." }),
    last: integrityReportSchema.nullable().meta({ description: "What the last full pass of this server found." }),
  })
  .meta({ id: "ScrubStatus" });
export type ScrubStatus = z.infer<typeof scrubStatusSchema>;
