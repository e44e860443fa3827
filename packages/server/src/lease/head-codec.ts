import {
  HEAD_FORMAT,
  type Head,
  headSchema,
  SandboxerError,
  storedSecondsSchema,
  storedTimeSchema,
} from "@sandboxer/protocol";
import { z } from "zod";
import { recordDamaged } from "../support/record-damage.ts";

/** A record in the seeds' layout, from before there were heads: it names no owner and no checkpoint. */
const importedRecordSchema = z.looseObject({
  format: z.undefined().optional(),
  createdAt: storedTimeSchema.optional().catch(undefined),
  idle_timeout: storedSecondsSchema.optional().catch(undefined),
});

export type ImportedRecord = z.infer<typeof importedRecordSchema>;

export type StoredRecord = { readonly head: Head } | { readonly imported: ImportedRecord };

export function encodeHead(head: Head): Uint8Array {
  return Buffer.from(`${JSON.stringify(head, undefined, 2)}\n`);
}

/** The first head for a folder that came with a record of its own. */
export function withImported(head: Head, { createdAt, idle_timeout, ...others }: ImportedRecord): Head {
  return {
    ...others,
    ...head,
    createdAt: createdAt ?? head.createdAt,
    idle_timeout: idle_timeout ?? head.idle_timeout,
  };
}

/**
 * Reads the stored record of a sandbox in `object`. A format that this release cannot read is refused, never
 * overwritten.
 */
export function decodeRecord(sandboxId: string, body: Uint8Array, object = `${sandboxId}/metadata.json`): StoredRecord {
  const value = parseJson(object, body);
  const format = (value as { format?: unknown } | null)?.format;
  // Nearly all are heads, and a failed check of each costs as much as reading it.
  const imported = format === undefined ? importedRecordSchema.safeParse(value) : undefined;
  if (imported?.success === true) return { imported: imported.data };
  if (typeof format === "number" && format !== HEAD_FORMAT) {
    throw new SandboxerError(
      "not_supported",
      `${object} has format ${format}; this server reads format ${HEAD_FORMAT}.`,
      { hint: "Use a server of the release that wrote it, or a newer release.", details: { object } },
    );
  }
  const head = headSchema.safeParse(value);
  if (head.success) return { head: head.data };
  throw recordDamaged(object, z.prettifyError(head.error));
}

function parseJson(object: string, body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString("utf8"));
  } catch (error) {
    throw recordDamaged(object, error instanceof Error ? error.message : String(error), error);
  }
}
