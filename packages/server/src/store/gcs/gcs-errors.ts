import { BucketError, type BucketFailure, type RefusalReason } from "../bucket/bucket-error.ts";
import { jsonOf } from "../../support/json.ts";

const UNCLEAR_STATUS = new Set([408, 409, 425, 429]);

/** Error codes of failed or lost connections, and of names that could not be resolved. */
const NETWORK_CODE = /^(ECONN|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EPIPE|EHOST|ENET|UND_ERR_)/;

/** Converts an unsuccessful response to an error. Reads its body. */
export async function failureOf(answer: Response): Promise<BucketError> {
  const text = await answer.text().catch(() => "");
  const { message, reason } = parse(text);
  const said = `${message ?? (text.slice(0, 200).trim() || answer.statusText)} (${answer.status})`;
  return new BucketError(judge(answer.status, reason, message ?? text), said);
}

function judge(status: number, reason: string, message: string): BucketFailure {
  if (status === 412 || status === 304) return { kind: "precondition" };
  // Both are called notFound; only the text tells them apart.
  if (status === 404) return /bucket/i.test(message) ? refused("bucket") : { kind: "absent" };
  if (status >= 500 || UNCLEAR_STATUS.has(status) || /rateLimitExceeded/i.test(reason)) {
    return { kind: "unclear", reached: true };
  }
  if (/quota|storageFull/i.test(reason)) return refused("space");
  if (status === 401) return refused("credentials");
  if (status === 403) return refused("rights");
  return refused("request");
}

function refused(reason: RefusalReason): BucketFailure {
  return { kind: "refused", reason };
}

function parse(text: string): { readonly message: string | undefined; readonly reason: string } {
  const said = jsonOf(text) as { error?: { message?: string; errors?: { reason?: string }[] } } | null | undefined;
  return { message: said?.error?.message, reason: said?.error?.errors?.[0]?.reason ?? "" };
}

/** Why there was no response at all. */
export function asBucketError(thrown: unknown): unknown {
  if (thrown instanceof BucketError || !(thrown instanceof Error)) return thrown;
  return new BucketError({ kind: "unclear", reached: false }, reasonsOf(thrown), thrown);
}

/** Why there is no token: the network, or the operator's configuration. */
export function asCredentialsError(thrown: unknown): BucketError {
  const { code, status } = thrown as { code?: unknown; status?: unknown };
  const network =
    (typeof code === "string" && NETWORK_CODE.test(code)) || (typeof status === "number" && status >= 500);
  const failure: BucketFailure = network ? { kind: "unclear", reached: false } : refused("credentials");
  return new BucketError(failure, thrown instanceof Error ? reasonsOf(thrown) : String(thrown), thrown);
}

/** `fetch failed` is meaningless; its cause is not. */
function reasonsOf(error: Error): string {
  const { cause } = error;
  if (cause instanceof AggregateError) return reasonsOf(cause.errors[0] as Error);
  return cause instanceof Error && cause.message !== "" ? cause.message : error.message;
}
