import type { RequestKeys } from "../../manager/encryption.ts";

/**
 * Servers never pass on a client's encryption key. The server that runs the sandbox has the key in memory; the server
 * that got the call proves with this header that the client sent it the same key for this call.
 */
export const PROOF_HEADER = "sandboxer-encryption-proof";
/** Clocks of servers differ, and a call may wait. */
const LONGEST_AGE_MS = 5 * 60_000;

interface ProvedCall {
  readonly method: string | undefined;
  /** The path with the query. */
  readonly url: string | undefined;
}

export function proofFor({ presentedKey }: RequestKeys, call: ProvedCall): Record<string, string> {
  if (presentedKey === undefined) return {};
  const nowMs = Date.now();
  return { [PROOF_HEADER]: `${nowMs}.${presentedKey.prove(textOf(call, nowMs))}` };
}

/** The claim of a call to have seen a key; only a server with the key can check it. */
export function proofIn(header: string | string[] | undefined, call: ProvedCall): RequestKeys["proof"] {
  const [, ms = "", mac = ""] = /^(\d{13})\.([\w-]{43})$/.exec(String(header ?? "")) ?? [];
  if (mac === "" || Math.abs(Date.now() - Number(ms)) > LONGEST_AGE_MS) return undefined;
  return { text: textOf(call, Number(ms)), mac };
}

function textOf({ method, url }: ProvedCall, ms: number): string {
  return `${ms} ${method} ${url}`;
}
