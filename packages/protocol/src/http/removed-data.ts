import { z } from "zod";

const bytes = z.number().int().nonnegative().nullable();

/** How much of a deleted sandbox's data is removed with it. Null if the store could not be read. */
export const removedDataSchema = z
  .object({
    removed_bytes: bytes.meta({
      description: "Data that only this sandbox used. It is removed from the store immediately.",
    }),
    shared_bytes: bytes.meta({
      description:
        "Data that other sandboxes or snapshots use or have used. Garbage collection removes it when nothing needs it.",
    }),
  })
  .meta({ id: "RemovedData" });
export type RemovedData = z.infer<typeof removedDataSchema>;
