import { BucketError, type RefusalReason } from "../bucket/bucket-error.ts";

/** Error codes of the servers in the field. Any other code is judged by its status. */
const REASONS: Readonly<Record<string, RefusalReason>> = {
  InvalidAccessKeyId: "credentials",
  SignatureDoesNotMatch: "credentials",
  ExpiredToken: "credentials",
  ExpiredTokenException: "credentials",
  InvalidToken: "credentials",
  InvalidClientTokenId: "credentials",
  CredentialsProviderError: "credentials",
  TokenProviderError: "credentials",
  AccessDenied: "rights",
  NoSuchBucket: "bucket",
  InvalidBucketName: "bucket",
  PermanentRedirect: "region",
  AuthorizationHeaderMalformed: "region",
  QuotaExceeded: "space",
  XMinioStorageFull: "space",
  XMinioAdminBucketQuotaExceeded: "space",
};

/** Statuses that are worth a retry, or that do not tell whether it was done. */
const UNCLEAR_CODES = new Set([
  "RequestTimeout",
  "RequestTimeTooSkewed",
  "SlowDown",
  "Throttling",
  "ThrottlingException",
]);

/** One request's failure, as the SDK throws it. */
export function asBucketError(thrown: unknown): unknown {
  if (thrown instanceof BucketError || !(thrown instanceof Error)) return thrown;
  const status = statusOf(thrown);
  const code = thrown.name;
  const said = `${thrown.message === "" || thrown.message === "UnknownError" ? code : thrown.message}${
    status === undefined ? "" : ` (${status} ${code})`
  }`;
  const reason = REASONS[code];
  if (reason !== undefined) return new BucketError({ kind: "refused", reason }, said, thrown);
  if (thrown.message.startsWith("Region is missing")) {
    return new BucketError({ kind: "refused", reason: "region" }, said, thrown);
  }
  if (status === undefined) return new BucketError({ kind: "unclear", reached: false }, withCode(thrown), thrown);
  if (status === 412) return new BucketError({ kind: "precondition" }, said, thrown);
  if (status === 404) return new BucketError({ kind: "absent" }, said, thrown);
  if (status === 507) return new BucketError({ kind: "refused", reason: "space" }, said, thrown);
  if (isUnclear(status, code)) return new BucketError({ kind: "unclear", reached: true }, said, thrown);
  return new BucketError({ kind: "refused", reason: reasonOf(status) }, said, thrown);
}

function isUnclear(status: number, code: string): boolean {
  if (UNCLEAR_CODES.has(code)) return true;
  // 501 is the only one of these with a clear meaning. A success that throws could not be parsed.
  return (status >= 500 && status !== 501) || status < 300 || [408, 409, 425, 429].includes(status);
}

function reasonOf(status: number): RefusalReason {
  if (status === 401) return "credentials";
  if (status === 403) return "rights";
  return status < 400 ? "region" : "request";
}

/** Undefined when there was no answer. */
export function statusOf(thrown: unknown): number | undefined {
  return (thrown as { $metadata?: { httpStatusCode?: number } } | undefined)?.$metadata?.httpStatusCode;
}

function withCode(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  const inner = error instanceof AggregateError ? (error.errors[0] as Error | undefined)?.message : undefined;
  const text = [error.message, inner].find((message) => message !== undefined && message !== "") ?? error.name;
  return code === undefined || text.includes(code) ? text : `${text} (${code})`;
}
