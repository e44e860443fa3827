import { createHash } from "node:crypto";
import { isSameSecret } from "../../../support/same-secret.ts";

export interface SignedFile {
  /** Exactly as in the query. */
  readonly path: string;
  readonly operation: "read" | "write";
  /** Empty if the query names none. */
  readonly user: string;
  /** Unix seconds, as in the query; undefined: it does not expire. */
  readonly expiration: string | undefined;
}

/** The signature of a URL for one file, with the token of its sandbox. */
export function signatureOf({ path, operation, user, expiration }: SignedFile, token: string): string {
  const signed = [path, operation, user, token, ...(expiration === undefined ? [] : [expiration])].join(":");
  return `v1_${createHash("sha256").update(signed).digest("base64").replaceAll("=", "")}`;
}

export function isSignedWith(file: SignedFile, signature: string, token: string): boolean {
  return isSameSecret(signature, signatureOf(file, token));
}

/** Whether an otherwise valid signature has expired. A time that is no number has expired. */
export function isExpired({ expiration }: SignedFile, nowMs: number): boolean {
  if (expiration === undefined) return false;
  return !/^\d{1,12}$/.test(expiration) || Number(expiration) * 1000 < nowMs;
}
