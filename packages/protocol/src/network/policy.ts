import { z } from "zod";
import { ENTRY_HINT, parseEntry } from "./entry.ts";
import { MAX_ENTRIES, MAX_ENTRY_LENGTH } from "./network-text.ts";

export const networkEntrySchema = z
  .string()
  .max(MAX_ENTRY_LENGTH)
  .refine((text) => parseEntry(text) !== undefined, { error: `must be ${ENTRY_HINT}` });

const entriesSchema = z.array(networkEntrySchema).max(MAX_ENTRIES).readonly();

const rulesSchema = z.strictObject({
  allow: entriesSchema.optional().meta({ description: "Only these. Default: everything." }),
  deny: entriesSchema.optional().meta({ description: "Not these, whatever allow says." }),
});

const MEANING = 'must be "none", "open", or an object with allow and deny lists';

/** As in requests and profiles. `sandbox` is an earlier name of `open`. */
export const networkSettingSchema = z
  .union([z.enum(["none", "open", "sandbox"]), rulesSchema], {
    error: (issue) => (isObject(issue.input) ? undefined : MEANING),
  })
  .meta({ description: "The network policy: none, open, or lists of domains, addresses and CIDRs." });

/** As in responses. */
export const networkPolicySchema = z
  .union([
    z.enum(["none", "open"]),
    z.object({
      allow: z.array(z.string()).readonly().exactOptional(),
      deny: z.array(z.string()).readonly().exactOptional(),
    }),
  ])
  .meta({ id: "NetworkPolicy", description: "none, open, or lists of domains, addresses and CIDRs." });

function isObject(input: unknown): boolean {
  return typeof input === "object" && input !== null && !Array.isArray(input);
}
