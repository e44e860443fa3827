import { z } from "zod";
import { storedTextSchema } from "../stored-limits.ts";
import { boundedRecord, shownLabelsSchema } from "./common.ts";

const text = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/;
const rule = "up to 63 letters, digits, dots, dashes, underscores and slashes, beginning with a letter or a digit";

/** Facts about a server that its operator chose, such as its zone or its pool. */
export const serverLabelsSchema = boundedRecord(
  z.string().regex(text, `must be ${rule}`),
  z.string().regex(text, `must be ${rule}`),
  { entries: 16, kib: 2 },
);
export type ServerLabels = z.infer<typeof serverLabelsSchema>;

/** The servers that a sandbox may run on, by their labels. */
export const affinitySchema = z
  .strictObject({
    require: serverLabelsSchema
      .optional()
      .meta({ description: "Labels that a server must have: the sandbox runs on no other one." }),
    prefer: serverLabelsSchema
      .optional()
      .meta({ description: "Labels of servers that are tried first, those with the most of them before the others." }),
  })
  .meta({ id: "Affinity" });

export const shownAffinitySchema = z.object({
  require: shownLabelsSchema.optional(),
  prefer: shownLabelsSchema.optional(),
});

const storedLabelsSchema = z.record(storedTextSchema, storedTextSchema).optional();

/** As it is stored, perhaps by a later version. */
export const storedAffinitySchema = z.looseObject({ require: storedLabelsSchema, prefer: storedLabelsSchema });
export type Affinity = z.infer<typeof storedAffinitySchema>;
