import { z } from "zod";

const keptSchema = z.enum(["kept", "lost"]);

/** How many are kept and lost; null: unknown. */
const countedSchema = z.object({ kept: z.number().int(), lost: z.number().int() }).nullable();

/** The parts of a captured sandbox that a restore on a backend keeps and loses. */
export const carriedSchema = z
  .object({
    snapshot_id: z.string(),
    kind: z.string(),
    /** The backend that it was captured on, and the target. */
    from: z.string(),
    backend: z.string(),
    /** Whether it can be loaded there; `why_not` has the reason if not, and `backends` lists those that can. */
    loadable: z.boolean(),
    why_not: z.string().nullable(),
    backends: z.array(z.string()),
    memory: keptSchema,
    processes: keptSchema,
    files: z.object({
      /** `all`: the whole sandbox. `workspace`: its working folder. `none`: only a record is kept. */
      scope: z.enum(["all", "workspace", "none"]),
      /** Files that its user may have written; null: unknown. */
      count: z.number().int().nullable(),
      bytes: z.number().int().nullable(),
      /** The count is truncated. */
      truncated: z.boolean(),
    }),
    /** Hard links: lost ones become separate files. Null also if everything is one image. */
    hard_links: countedSchema,
    /** Extended attributes of the user (`user.*`). */
    xattrs: countedSchema,
    /** Variables of the sandbox, which are in its spec. */
    env: z.literal("kept"),
    /** The names of its secrets; their values are resolved again. */
    secrets: z.array(z.string()),
    network: z.enum(["none", "kept", "the backend has none"]),
    limits: z.enum(["none", "kept", "the backend has none"]),
    /** Further notes, for people. */
    notes: z.array(z.string()),
  })
  .meta({ id: "Carried" });
export type Carried = z.infer<typeof carriedSchema>;
