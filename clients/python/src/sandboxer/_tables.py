"""The routes and the error codes of the server. Generated from the protocol by `npm run reference`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    accept: str
    content_type: str | None = None
    #: It takes an Idempotency-Key.
    idempotent: bool = False
    #: Whether it may be sent again if the outcome of the first request is unknown.
    repeatable: bool = True


@dataclass(frozen=True)
class ErrorRow:
    status: int
    retryable: bool
    hint: str


ROUTES: dict[str, Route] = {
    "createSandbox": Route(
        "POST",
        "/v1/sandboxes",
        accept="application/json",
        idempotent=True,
    ),
    "acquireSandbox": Route(
        "POST",
        "/v1/sandboxes/acquire",
        accept="application/json",
        repeatable=False,
    ),
    "listSandboxes": Route(
        "GET",
        "/v1/sandboxes",
        accept="application/json",
    ),
    "getSandbox": Route(
        "GET",
        "/v1/sandboxes/{id}",
        accept="application/json",
    ),
    "updateSandbox": Route(
        "PATCH",
        "/v1/sandboxes/{id}",
        accept="application/json",
    ),
    "sandboxNetwork": Route(
        "GET",
        "/v1/sandboxes/{id}/network",
        accept="application/json",
    ),
    "previewRetention": Route(
        "GET",
        "/v1/sandboxes/{id}/retention",
        accept="application/json",
    ),
    "destroySandbox": Route(
        "DELETE",
        "/v1/sandboxes/{id}",
        accept="application/json",
    ),
    "checkpointSandbox": Route(
        "POST",
        "/v1/sandboxes/{id}/checkpoint",
        accept="application/json",
        repeatable=False,
    ),
    "resumeSandbox": Route(
        "POST",
        "/v1/sandboxes/{id}/resume",
        accept="application/json",
    ),
    "forkSandbox": Route(
        "POST",
        "/v1/sandboxes/{id}/fork",
        accept="application/json",
        idempotent=True,
    ),
    "rewindSandbox": Route(
        "POST",
        "/v1/sandboxes/{id}/rewind",
        accept="application/json",
        repeatable=False,
    ),
    "promoteSandbox": Route(
        "POST",
        "/v1/sandboxes/{id}/promote",
        accept="application/json",
        idempotent=True,
    ),
    "moveSandbox": Route(
        "POST",
        "/v1/sandboxes/{id}/move",
        accept="application/json",
        idempotent=True,
    ),
    "handoffSandbox": Route(
        "POST",
        "/v1/sandboxes/{id}/handoff",
        accept="application/json",
        repeatable=False,
    ),
    "extendTtl": Route(
        "PATCH",
        "/v1/sandboxes/{id}/ttl",
        accept="application/json",
    ),
    "expireSandboxes": Route(
        "POST",
        "/v1/sandboxes/expire",
        accept="application/json",
        repeatable=False,
    ),
    "recreateSandbox": Route(
        "POST",
        "/v1/sandboxes/{id}/recreate",
        accept="application/json",
        repeatable=False,
    ),
    "reachability": Route(
        "GET",
        "/v1/sandboxes/{id}/reachability",
        accept="application/json",
    ),
    "sandboxStats": Route(
        "GET",
        "/v1/sandboxes/{id}/stats",
        accept="application/json",
    ),
    "exec": Route(
        "POST",
        "/v1/sandboxes/{id}/exec",
        accept="application/json",
        idempotent=True,
    ),
    "listProcesses": Route(
        "GET",
        "/v1/sandboxes/{id}/processes",
        accept="application/json",
    ),
    "getProcess": Route(
        "GET",
        "/v1/sandboxes/{id}/processes/{process_id}",
        accept="application/json",
    ),
    "processTable": Route(
        "GET",
        "/v1/sandboxes/{id}/process-table",
        accept="application/json",
    ),
    "processOutput": Route(
        "GET",
        "/v1/sandboxes/{id}/processes/{process_id}/output",
        accept="application/x-ndjson",
    ),
    "writeStdin": Route(
        "POST",
        "/v1/sandboxes/{id}/processes/{process_id}/stdin",
        accept="application/json",
        content_type="application/octet-stream",
        repeatable=False,
    ),
    "signalProcess": Route(
        "POST",
        "/v1/sandboxes/{id}/processes/{process_id}/signal",
        accept="application/json",
        repeatable=False,
    ),
    "resizeProcess": Route(
        "POST",
        "/v1/sandboxes/{id}/processes/{process_id}/resize",
        accept="application/json",
    ),
    "releaseProcess": Route(
        "DELETE",
        "/v1/sandboxes/{id}/processes/{process_id}",
        accept="application/json",
    ),
    "runCell": Route(
        "POST",
        "/v1/sandboxes/{id}/cells",
        accept="application/json",
        repeatable=False,
    ),
    "followCell": Route(
        "GET",
        "/v1/sandboxes/{id}/contexts/{context_id}/cells/{cell_id}",
        accept="application/x-ndjson",
    ),
    "createContext": Route(
        "POST",
        "/v1/sandboxes/{id}/contexts",
        accept="application/json",
        repeatable=False,
    ),
    "listContexts": Route(
        "GET",
        "/v1/sandboxes/{id}/contexts",
        accept="application/json",
    ),
    "restartContext": Route(
        "POST",
        "/v1/sandboxes/{id}/contexts/{context_id}/restart",
        accept="application/json",
        repeatable=False,
    ),
    "interruptContext": Route(
        "POST",
        "/v1/sandboxes/{id}/contexts/{context_id}/interrupt",
        accept="application/json",
        repeatable=False,
    ),
    "deleteContext": Route(
        "DELETE",
        "/v1/sandboxes/{id}/contexts/{context_id}",
        accept="application/json",
    ),
    "readFile": Route(
        "GET",
        "/v1/sandboxes/{id}/files",
        accept="application/octet-stream",
    ),
    "writeFile": Route(
        "PUT",
        "/v1/sandboxes/{id}/files",
        accept="application/json",
        content_type="application/octet-stream",
    ),
    "removeFile": Route(
        "DELETE",
        "/v1/sandboxes/{id}/files",
        accept="application/json",
    ),
    "statFile": Route(
        "GET",
        "/v1/sandboxes/{id}/files/stat",
        accept="application/json",
    ),
    "listFiles": Route(
        "GET",
        "/v1/sandboxes/{id}/files/list",
        accept="application/json",
    ),
    "makeFolder": Route(
        "POST",
        "/v1/sandboxes/{id}/files/folder",
        accept="application/json",
        repeatable=False,
    ),
    "renameFile": Route(
        "POST",
        "/v1/sandboxes/{id}/files/rename",
        accept="application/json",
        repeatable=False,
    ),
    "downloadTree": Route(
        "GET",
        "/v1/sandboxes/{id}/tree",
        accept="application/x-tar",
    ),
    "uploadTree": Route(
        "PUT",
        "/v1/sandboxes/{id}/tree",
        accept="application/json",
        content_type="application/x-tar",
    ),
    "listPorts": Route(
        "GET",
        "/v1/sandboxes/{id}/ports",
        accept="application/json",
    ),
    "createPortLink": Route(
        "POST",
        "/v1/sandboxes/{id}/port-links",
        accept="application/json",
    ),
    "withdrawPortLinks": Route(
        "DELETE",
        "/v1/sandboxes/{id}/port-links",
        accept="application/json",
    ),
    "createSnapshot": Route(
        "POST",
        "/v1/sandboxes/{id}/snapshot",
        accept="application/json",
        idempotent=True,
    ),
    "listSnapshots": Route(
        "GET",
        "/v1/snapshots",
        accept="application/json",
    ),
    "getSnapshot": Route(
        "GET",
        "/v1/snapshots/{id}",
        accept="application/json",
    ),
    "updateSnapshot": Route(
        "PATCH",
        "/v1/snapshots/{id}",
        accept="application/json",
    ),
    "deleteSnapshot": Route(
        "DELETE",
        "/v1/snapshots/{id}",
        accept="application/json",
    ),
    "restoreSnapshot": Route(
        "POST",
        "/v1/snapshots/{id}/restore",
        accept="application/json",
        idempotent=True,
    ),
    "proveSnapshot": Route(
        "POST",
        "/v1/snapshots/{id}/prove",
        accept="application/json",
        repeatable=False,
    ),
    "explainSnapshot": Route(
        "GET",
        "/v1/snapshots/{id}/explain",
        accept="application/json",
    ),
    "diffSnapshots": Route(
        "GET",
        "/v1/snapshots/{id}/diff",
        accept="application/json",
    ),
    "listImages": Route(
        "GET",
        "/v1/images",
        accept="application/json",
    ),
    "pullImage": Route(
        "POST",
        "/v1/images",
        accept="application/json",
    ),
    "importImage": Route(
        "POST",
        "/v1/images/import",
        accept="application/json",
        content_type="application/x-tar",
        repeatable=False,
    ),
    "pruneImages": Route(
        "POST",
        "/v1/images/prune",
        accept="application/json",
    ),
    "getImage": Route(
        "GET",
        "/v1/images/{image}",
        accept="application/json",
    ),
    "deleteImage": Route(
        "DELETE",
        "/v1/images/{image}",
        accept="application/json",
    ),
    "verifySnapshot": Route(
        "POST",
        "/v1/snapshots/{id}/verify",
        accept="application/json",
        repeatable=False,
    ),
    "verifySandbox": Route(
        "POST",
        "/v1/sandboxes/{id}/verify",
        accept="application/json",
        repeatable=False,
    ),
    "proveSandbox": Route(
        "POST",
        "/v1/sandboxes/{id}/prove",
        accept="application/json",
        repeatable=False,
    ),
    "scrubStore": Route(
        "POST",
        "/v1/scrub",
        accept="application/json",
        repeatable=False,
    ),
    "scrubStatus": Route(
        "GET",
        "/v1/scrub",
        accept="application/json",
    ),
    "stopScrub": Route(
        "DELETE",
        "/v1/scrub",
        accept="application/json",
    ),
    "serverInfo": Route(
        "GET",
        "/v1/server",
        accept="application/json",
    ),
    "listProfiles": Route(
        "GET",
        "/v1/profiles",
        accept="application/json",
    ),
    "getProfile": Route(
        "GET",
        "/v1/profiles/{name}",
        accept="application/json",
    ),
    "listBackends": Route(
        "GET",
        "/v1/backends",
        accept="application/json",
    ),
    "listInstances": Route(
        "GET",
        "/v1/instances",
        accept="application/json",
    ),
    "listOperations": Route(
        "GET",
        "/v1/operations",
        accept="application/json",
    ),
    "getOperation": Route(
        "GET",
        "/v1/operations/{id}",
        accept="application/json",
    ),
    "events": Route(
        "GET",
        "/v1/events",
        accept="application/json",
    ),
    "listUsage": Route(
        "GET",
        "/v1/usage",
        accept="application/json",
    ),
    "sandboxUsage": Route(
        "GET",
        "/v1/sandboxes/{id}/usage",
        accept="application/json",
    ),
}

ERRORS: dict[str, ErrorRow] = {
    "bad_request": ErrorRow(
        400,
        False,
        "Correct the request; the message says which field is wrong.",
    ),
    "unauthorized": ErrorRow(
        401,
        False,
        "Send the key in the Authorization header, as `Bearer KEY`.",
    ),
    "permission_denied": ErrorRow(
        403,
        False,
        "Use the token that came with the sandbox's id, or a server key.",
    ),
    "key_required": ErrorRow(
        403,
        False,
        "Send the key with the fingerprint that the message names, as Sandboxer-Encryption-Key (docs/guides/encryption.md).",
    ),
    "wrong_key": ErrorRow(
        403,
        False,
        "Use the key with the fingerprint that the message names first.",
    ),
    "not_found": ErrorRow(
        404,
        False,
        "See /openapi.json for the paths; WebSockets are at /create and /attach/{sandbox_id}.",
    ),
    "sandbox_not_found": ErrorRow(
        404,
        False,
        "List sandboxes with `sandboxer ls`, or create a new one.",
    ),
    "snapshot_not_found": ErrorRow(
        404,
        False,
        "Take the snapshot first, or name one that exists.",
    ),
    "checkpoint_not_found": ErrorRow(
        404,
        False,
        "List the checkpoints of the sandbox with `sandboxer timeline SANDBOX`.",
    ),
    "process_not_found": ErrorRow(
        404,
        False,
        "The process has ended and its record was deleted. List processes with `sandboxer ps`.",
    ),
    "context_not_found": ErrorRow(
        404,
        False,
        "List the sandbox's interpreters with GET /v1/sandboxes/{id}/contexts.",
    ),
    "operation_not_found": ErrorRow(
        404,
        False,
        "Each server keeps only its newest operations. Look at the sandbox itself: its record shows the outcome.",
    ),
    "file_not_found": ErrorRow(
        404,
        False,
        "Check the path inside the sandbox.",
    ),
    "image_not_found": ErrorRow(
        404,
        False,
        "Check the image's name. List the images on the server with `sandboxer images ls`.",
    ),
    "key_not_found": ErrorRow(
        404,
        False,
        "List the keys with `sandboxer keys list`.",
    ),
    "profile_not_found": ErrorRow(
        404,
        False,
        "List the profiles with `sandboxer profiles list`.",
    ),
    "wrong_state": ErrorRow(
        409,
        True,
        "Wait until the sandbox is running, then try again.",
    ),
    "snapshot_in_use": ErrorRow(
        409,
        False,
        "Delete the sandboxes that the message names, or wait until each is saved.",
    ),
    "image_in_use": ErrorRow(
        409,
        False,
        "Pause or delete the sandboxes that use the image.",
    ),
    "snapshot_pinned": ErrorRow(
        409,
        False,
        "Unpin it first: `sandboxer snapshots unpin SNAPSHOT`.",
    ),
    "name_taken": ErrorRow(
        409,
        False,
        "Choose another name, or rename the snapshot that has it.",
    ),
    "sandbox_in_use": ErrorRow(
        409,
        True,
        "Disconnect the other client first.",
    ),
    "execution_in_progress": ErrorRow(
        409,
        True,
        "Wait for the execution to end, or kill it.",
    ),
    "lease_held": ErrorRow(
        409,
        True,
        "Another server owns the sandbox. Attach there, or wait until it hands the sandbox off.",
    ),
    "lease_lost": ErrorRow(
        409,
        False,
        "Another server owns the sandbox now; attach to it again.",
    ),
    "sandbox_destroyed": ErrorRow(
        410,
        False,
        "The sandbox was deleted. Create a new one, or restore a snapshot of it.",
    ),
    "stale_epoch": ErrorRow(
        412,
        False,
        "Read the sandbox again and repeat the call with its current epoch.",
    ),
    "too_large": ErrorRow(
        413,
        False,
        "Send less data in one request.",
    ),
    "not_supported": ErrorRow(
        422,
        False,
        "Choose a backend that supports this; `sandboxer backends` lists their capabilities.",
    ),
    "checkpoint_disabled": ErrorRow(
        422,
        False,
        "Start the server with --store, and create the sandbox with enable_checkpoint.",
    ),
    "ttl_too_long": ErrorRow(
        422,
        False,
        "Ask for less, or use a profile that allows more.",
    ),
    "image_incompatible": ErrorRow(
        422,
        False,
        "Restore on a server whose engine, platform and root filesystem match the image.",
    ),
    "image_damaged": ErrorRow(
        422,
        False,
        "Attach with ?checkpoint=NAME to use an older checkpoint.",
    ),
    "limit_reached": ErrorRow(
        429,
        True,
        "Delete sandboxes that you do not need, or raise the server's limit.",
    ),
    "rate_limited": ErrorRow(
        429,
        True,
        "Wait for the time given in retry_after_seconds, then try again.",
    ),
    "internal": ErrorRow(
        500,
        False,
        "See the server's log for details.",
    ),
    "sandbox_failed": ErrorRow(
        500,
        False,
        "The sandbox ended unexpectedly; attach again to restore its last checkpoint.",
    ),
    "checkpoint_failed": ErrorRow(
        500,
        True,
        "The sandbox keeps running and its older checkpoints are intact; try again.",
    ),
    "backend_unavailable": ErrorRow(
        503,
        True,
        "Run `sandboxer doctor`.",
    ),
    "no_fitting_server": ErrorRow(
        503,
        True,
        "Start a server with the labels that the message names (--server-labels), or change the sandbox's affinity.",
    ),
    "store_unavailable": ErrorRow(
        503,
        True,
        "Check that the server can reach the store and write to it, then try again.",
    ),
    "registry_unavailable": ErrorRow(
        503,
        True,
        "Check that the server can reach the registry, then try again.",
    ),
    "secret_unavailable": ErrorRow(
        503,
        True,
        "Check the secret's entry in the server's config file (docs/reference/configuration.md).",
    ),
    "key_unavailable": ErrorRow(
        503,
        False,
        "Give this server the key (encryption_key, encryption_old_keys, secrets), or use a server that has it.",
    ),
    "no_space": ErrorRow(
        503,
        True,
        "Free space on the volume that the message names.",
    ),
    "starting": ErrorRow(
        503,
        True,
        "The server is starting; try again in a moment.",
    ),
    "draining": ErrorRow(
        503,
        True,
        "The server is shutting down; use another one.",
    ),
    "server_unreachable": ErrorRow(
        503,
        True,
        "Start a server with `sandboxer serve`, or give the URL of another one with --url or SANDBOXER_URL.",
    ),
    "timeout": ErrorRow(
        503,
        True,
        "Try again; the server's log shows what took long.",
    ),
}
