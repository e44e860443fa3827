import { readFileSync } from "node:fs";
import { isErrno, SandboxerError, SCOPES, secretNameSchema } from "@sandboxer/protocol";
import { z } from "zod";

export const KEYS_FORMAT = 1;

/** Loose: rewriting the file keeps unknown fields. */
const keyRecordSchema = z.looseObject({
  id: z.string().regex(/^[0-9a-f]{12}$/),
  name: z.string(),
  scope: z.enum(SCOPES),
  /** The hash of the secret, in hex. The secret itself is not stored. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime().nullable(),
  revoked_at: z.iso.datetime().nullable(),
  /** The name of the secret that encrypts data of its sandboxes; absent: the server's own. */
  encryption_key: secretNameSchema.optional(),
});

const keyFileSchema = z.looseObject({ format: z.literal(KEYS_FORMAT), keys: z.array(keyRecordSchema) });

export type KeyRecord = z.output<typeof keyRecordSchema>;
export type KeyFileContent = z.output<typeof keyFileSchema>;

export type KeyStatus = "active" | "expired" | "revoked";

export function keyStatus(record: KeyRecord, nowMs: number): KeyStatus {
  if (record.revoked_at !== null) return "revoked";
  return record.expires_at !== null && Date.parse(record.expires_at) <= nowMs ? "expired" : "active";
}

/** A missing file has no keys; an unreadable one is an error, never an empty list. */
export function readKeyFile(path: string): KeyFileContent {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (thrown) {
    if (isErrno(thrown) && thrown.code === "ENOENT") return { format: KEYS_FORMAT, keys: [] };
    throw damaged(path, thrown instanceof Error ? thrown.message : String(thrown), thrown);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    throw damaged(path, "it is not JSON", thrown);
  }
  const format = (value as { format?: unknown } | null)?.format;
  if (typeof format === "number" && format !== KEYS_FORMAT) {
    throw damaged(path, `its format is ${format}, but this program knows only ${KEYS_FORMAT}`);
  }
  const parsed = keyFileSchema.safeParse(value);
  if (!parsed.success) throw damaged(path, z.prettifyError(parsed.error), parsed.error);
  return parsed.data;
}

function damaged(path: string, problem: string, cause?: unknown): SandboxerError {
  return new SandboxerError("bad_request", `The keys in ${path} cannot be read: ${problem}.`, {
    hint: "Restore the file from a backup, or delete it and create new keys with `sandboxer keys create`.",
    cause,
  });
}
