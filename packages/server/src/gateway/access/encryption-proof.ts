import type { RequestKeys } from "../../manager/encryption.ts";

/**
 * A client's encryption key is never passed on from server to server. The server that has the sandbox has the key in
 * memory; the one that was asked proves, by this header, that it was shown the same key for this very call.
 */
export const PROOF_HEADER = "sandboxer-encryption-proof";
/** Clocks of servers differ, and a call may wait. */
const LONGEST_AGE_MS = 5 * 60_000;

interface ProvedCall {
  readonly method: string | undefined;
  /** Its path with the query. */
  readonly url: string | undefined;
}

export function proofFor({ presentedKey }: RequestKeys, call: ProvedCall): Record<string, string> {
  if (presentedKey === undefined) return {};
  const nowMs = Date.now();
  return { [PROOF_HEADER]: `${nowMs}.${presentedKey.prove(textOf(call, nowMs))}` };
}

/** What a call claims to have been shown; who has the key can tell. */
export function proofIn(header: string | string[] | undefined, call: ProvedCall): RequestKeys["proof"] {
  const [, ms = "", mac = ""] = /^(\d{13})\.([\w-]{43})$/.exec(String(header ?? "")) ?? [];
  if (mac === "" || Math.abs(Date.now() - Number(ms)) > LONGEST_AGE_MS) return undefined;
  return { text: textOf(call, Number(ms)), mac };
}

function textOf({ method, url }: ProvedCall, ms: number): string {
  return `${ms} ${method} ${url}`;
}
