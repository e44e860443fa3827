import { z } from "zod";

const keptSchema = z.enum(["kept", "lost"]);

/** How many come along and how many do not; null: nobody has counted. */
const countedSchema = z.object({ kept: z.number().int(), lost: z.number().int() }).nullable();

/** What a sandbox that is made of a snapshot on a backend has of the captured one. */
export const carriedSchema = z
  .object({
    snapshot_id: z.string(),
    kind: z.string(),
    /** The backend that it was captured on, and the one that loads it. */
    from: z.string(),
    backend: z.string(),
    /** Whether it can be loaded there; `why_not` says why it cannot, and `backends` where it can. */
    loadable: z.boolean(),
    why_not: z.string().nullable(),
    backends: z.array(z.string()),
    memory: keptSchema,
    processes: keptSchema,
    files: z.object({
      /** `all`: of the whole sandbox. `workspace`: of its working folder. `none`: only a record is kept. */
      scope: z.enum(["all", "workspace", "none"]),
      /** Of those that its user can have written; null: nobody has counted. */
      count: z.number().int().nullable(),
      bytes: z.number().int().nullable(),
      /** There are more than were counted. */
      truncated: z.boolean(),
    }),
    /** Further names of files: those that are lost are files of their own. Null also where everything is one image. */
    hard_links: countedSchema,
    /** Extended attributes of the user (`user.*`). */
    xattrs: countedSchema,
    /** Variables of the sandbox, which are in its spec. */
    env: z.literal("kept"),
    /** The secrets that it asks for, by name; their values are resolved anew. */
    secrets: z.array(z.string()),
    network: z.enum(["none", "kept", "the backend has none"]),
    limits: z.enum(["none", "kept", "the backend has none"]),
    /** What else is worth knowing, for people. */
    notes: z.array(z.string()),
  })
  .meta({ id: "Carried" });
export type Carried = z.infer<typeof carriedSchema>;
