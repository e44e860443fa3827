/**
 * Every error that a user can meet is one row here: its HTTP status, whether the same call may succeed later, the exit
 * code of the CLI, and what to do next. Code throws a {@link SandboxerError}; only the two borders (gateway and CLI)
 * translate it.
 */
export const ERRORS = {
  bad_request: row(400, false, 2, "Correct the request; the message says which field is wrong."),
  unauthorized: row(401, false, 3, "Send the key in the Authorization header, as `Bearer KEY`."),
  permission_denied: row(403, false, 3, "Use the token that came with the sandbox's id, or a server key."),
  key_required: row(
    403,
    false,
    3,
    "Send the key with the fingerprint that the message names, as Sandboxer-Encryption-Key (docs/guides/encryption.md).",
  ),
  wrong_key: row(403, false, 3, "Use the key with the fingerprint that the message names first."),
  not_found: row(404, false, 4, "See /openapi.json for the paths; WebSockets are at /create and /attach/{sandbox_id}."),
  sandbox_not_found: row(404, false, 4, "List sandboxes with `sandboxer ls`, or create a new one."),
  snapshot_not_found: row(404, false, 4, "Take the snapshot first, or name one that exists."),
  checkpoint_not_found: row(404, false, 4, "List the checkpoints of the sandbox with `sandboxer timeline SANDBOX`."),
  process_not_found: row(
    404,
    false,
    4,
    "The process has ended and its record was deleted. List processes with `sandboxer ps`.",
  ),
  context_not_found: row(404, false, 4, "List the sandbox's interpreters with GET /v1/sandboxes/{id}/contexts."),
  operation_not_found: row(
    404,
    false,
    4,
    "Each server keeps only its newest operations. Look at the sandbox itself: its record shows the outcome.",
  ),
  file_not_found: row(404, false, 4, "Check the path inside the sandbox."),
  image_not_found: row(
    404,
    false,
    4,
    "Check the image's name. List the images on the server with `sandboxer images ls`.",
  ),
  key_not_found: row(404, false, 4, "List the keys with `sandboxer keys list`."),
  profile_not_found: row(404, false, 4, "List the profiles with `sandboxer profiles list`."),
  wrong_state: row(409, true, 5, "Wait until the sandbox is running, then try again."),
  snapshot_in_use: row(409, false, 5, "Delete the sandboxes that the message names, or wait until each is saved."),
  image_in_use: row(409, false, 5, "Pause or delete the sandboxes that use the image."),
  snapshot_pinned: row(409, false, 5, "Unpin it first: `sandboxer snapshots unpin SNAPSHOT`."),
  name_taken: row(409, false, 5, "Choose another name, or rename the snapshot that has it."),
  sandbox_in_use: row(409, true, 5, "Disconnect the other client first."),
  execution_in_progress: row(409, true, 5, "Wait for the execution to end, or kill it."),
  lease_held: row(
    409,
    true,
    5,
    "Another server owns the sandbox. Attach there, or wait until it hands the sandbox off.",
  ),
  lease_lost: row(409, false, 5, "Another server owns the sandbox now; attach to it again."),
  sandbox_destroyed: row(410, false, 4, "The sandbox was deleted. Create a new one, or restore a snapshot of it."),
  stale_epoch: row(412, false, 5, "Read the sandbox again and repeat the call with its current epoch."),
  too_large: row(413, false, 2, "Send less data in one request."),
  not_supported: row(
    422,
    false,
    6,
    "Choose a backend that supports this; `sandboxer backends` lists their capabilities.",
  ),
  checkpoint_disabled: row(
    422,
    false,
    6,
    "Start the server with --store, and create the sandbox with enable_checkpoint.",
  ),
  ttl_too_long: row(422, false, 6, "Ask for less, or use a profile that allows more."),
  image_incompatible: row(
    422,
    false,
    6,
    "Restore on a server whose engine, platform and root filesystem match the image.",
  ),
  image_damaged: row(422, false, 7, "Attach with ?checkpoint=NAME to use an older checkpoint."),
  limit_reached: row(429, true, 8, "Delete sandboxes that you do not need, or raise the server's limit."),
  rate_limited: row(429, true, 8, "Wait for the time given in retry_after_seconds, then try again."),
  internal: row(500, false, 1, "See the server's log for details."),
  sandbox_failed: row(500, false, 9, "The sandbox ended unexpectedly; attach again to restore its last checkpoint."),
  checkpoint_failed: row(500, true, 9, "The sandbox keeps running and its older checkpoints are intact; try again."),
  backend_unavailable: row(503, true, 10, "Run `sandboxer doctor`."),
  no_fitting_server: row(
    503,
    true,
    10,
    "Start a server with the labels that the message names (--server-labels), or change the sandbox's affinity.",
  ),
  store_unavailable: row(503, true, 10, "Check that the server can reach the store and write to it, then try again."),
  registry_unavailable: row(503, true, 10, "Check that the server can reach the registry, then try again."),
  secret_unavailable: row(
    503,
    true,
    10,
    "Check the secret's entry in the server's config file (docs/reference/configuration.md).",
  ),
  key_unavailable: row(
    503,
    false,
    10,
    "Give this server the key (encryption_key, encryption_old_keys, secrets), or use a server that has it.",
  ),
  no_space: row(503, true, 10, "Free space on the volume that the message names."),
  starting: row(503, true, 10, "The server is starting; try again in a moment."),
  draining: row(503, true, 10, "The server is shutting down; use another one."),
  server_unreachable: row(
    503,
    true,
    10,
    "Start a server with `sandboxer serve`, or give the URL of another one with --url or SANDBOXER_URL.",
  ),
  timeout: row(503, true, 11, "Try again; the server's log shows what took long."),
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

export interface ErrorRow {
  readonly httpStatus: number;
  readonly retryable: boolean;
  readonly exitCode: number;
  readonly hint: string;
}

export interface ErrorOptions {
  readonly cause?: unknown;
  /** Overrides the table's hint with a more specific one. */
  readonly hint?: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** The one error class. `message` is for people; programs test `code`. */
export class SandboxerError extends Error {
  readonly code: ErrorCode;
  readonly hint: string;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "SandboxerError";
    this.code = code;
    this.hint = options.hint ?? ERRORS[code].hint;
    this.details = options.details ?? {};
  }

  get row(): ErrorRow {
    return ERRORS[this.code];
  }
}

/** Converts anything thrown to a {@link SandboxerError}, so that a border has one shape to translate. */
export function asSandboxerError(thrown: unknown): SandboxerError {
  if (thrown instanceof SandboxerError) return thrown;
  if (isErrno(thrown) && (thrown.code === "ENOSPC" || thrown.code === "EDQUOT")) {
    const where = thrown.path === undefined ? "" : ` (${thrown.path})`;
    return new SandboxerError("no_space", `No space left on the device${where}.`, { cause: thrown });
  }
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new SandboxerError("internal", message, { cause: thrown });
}

/** An error of the operating system, as Node reports it. Browsers load this file too, so Node's type is not used. */
export function isErrno(
  thrown: unknown,
): thrown is Error & { readonly code: string; readonly path?: string; readonly syscall?: string } {
  return thrown instanceof Error && "code" in thrown && typeof thrown.code === "string";
}

function row(httpStatus: number, retryable: boolean, exitCode: number, hint: string): ErrorRow {
  return { httpStatus, retryable, exitCode, hint };
}
