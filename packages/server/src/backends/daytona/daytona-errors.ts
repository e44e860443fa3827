import { SandboxerError, type ErrorCode } from "@sandboxer/protocol";
import type { HttpFailure, HttpFailureFacts } from "../../support/http-failure.ts";

interface Row {
  readonly code: ErrorCode;
  readonly says: string;
  readonly hint: string;
}

/** https://www.daytona.io/docs/en/api-keys/ and https://www.daytona.io/docs/en/limits/ */
const BY_STATUS: Readonly<Record<number, Row>> = {
  400: row("bad_request", "rejected the request", "See Daytona's message for the reason."),
  401: row(
    "secret_unavailable",
    "refused the API key",
    "Create a key in Daytona's dashboard and set it as the secret daytona-api-key (DAYTONA_API_KEY). A key belongs to one organization.",
  ),
  403: row(
    "permission_denied",
    "does not allow the API key to do this",
    "Grant the key write and delete permissions for sandboxes and snapshots, and check DAYTONA_ORGANIZATION_ID: a key belongs to one organization.",
  ),
  404: row("sandbox_not_found", "could not find the object", "It was deleted there; create a new sandbox."),
  409: row(
    "wrong_state",
    "cannot do this now",
    "Another change to the sandbox is in progress; try again when it is done.",
  ),
  422: row("bad_request", "rejected the request", "See Daytona's message for the reason."),
  429: row(
    "rate_limited",
    "limits the rate of requests",
    "Wait for the given time, then try again; https://www.daytona.io/docs/en/limits/ lists the limits.",
  ),
};
const UNAVAILABLE = row(
  "backend_unavailable",
  "failed",
  "Try again. Check https://status.daytona.io for outages, and DAYTONA_API_URL for the right address.",
);
const QUOTA = row(
  "limit_reached",
  "has no room for it",
  "Delete sandboxes that you do not need, or raise the organization's limits: https://www.daytona.io/docs/en/limits/.",
);
/** Quotas have no status of their own: they come as 400 or 403. */
const ABOUT_QUOTA = /quota|limit exceeded|exceeds? .*limit/i;

/** Converts a failed call to Daytona to an error for the user of a sandbox. */
export function explainFailure(failure: HttpFailure): SandboxerError {
  const { facts } = failure;
  const { code, says, hint } = rowFor(facts);
  const said = facts.said === undefined ? reasonWithout(facts) : ` (${facts.status ?? "no status"}): ${facts.said}`;
  return new SandboxerError(code, `Daytona ${says}${said}`, {
    hint,
    cause: failure,
    details: {
      vendor_call: `${facts.method} ${facts.path}`,
      ...(facts.status === undefined ? {} : { vendor_status: facts.status }),
      ...(facts.said === undefined ? {} : { vendor_said: facts.said }),
      ...(facts.retryAfterMs === undefined ? {} : { retry_after_seconds: Math.ceil(facts.retryAfterMs / 1000) }),
    },
  });
}

/** The status of the Daytona response behind an error. */
export function vendorStatus(thrown: unknown): number | undefined {
  const status = thrown instanceof SandboxerError ? thrown.details["vendor_status"] : undefined;
  return typeof status === "number" ? status : undefined;
}

export function vendorSaid(thrown: unknown): string {
  const said = thrown instanceof SandboxerError ? thrown.details["vendor_said"] : undefined;
  return typeof said === "string" ? said : "";
}

/** Daytona's router says "Cannot POST /…" for unknown paths; a missing sandbox has another message. */
export function isMissingEndpoint(thrown: unknown): boolean {
  return vendorStatus(thrown) === 404 && /^Cannot (GET|POST|PUT|DELETE) /.test(vendorSaid(thrown));
}

function rowFor({ status, said = "", timedOut }: HttpFailureFacts): Row {
  if (timedOut === true) return row("timeout", "did not answer in time", UNAVAILABLE.hint);
  if ((status === 400 || status === 403) && ABOUT_QUOTA.test(said)) return QUOTA;
  return (status === undefined ? undefined : BY_STATUS[status]) ?? UNAVAILABLE;
}

function reasonWithout({ status }: HttpFailureFacts): string {
  return status === undefined ? ": no response." : ` (${status}).`;
}

function row(code: ErrorCode, says: string, hint: string): Row {
  return { code, says, hint };
}
