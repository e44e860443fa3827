"""The records and settings of the server's API. Generated from /openapi.json by `npm run reference`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import Required

__all__ = [
    "AcquireSettings",
    "AffinityInput",
    "BackendRecord",
    "Carried",
    "CarriedFiles",
    "CarriedHardLinks",
    "CellAnswer",
    "CellAnswerException",
    "CellResult",
    "CellResultTable",
    "DamagedSandbox",
    "Engine",
    "EventRecord",
    "Expiry",
    "FileEntry",
    "ForkSettings",
    "HandoffRecord",
    "ImageRecord",
    "InstanceHandoff",
    "InstanceRecord",
    "IntegrityReport",
    "IntegrityReportDamagedBlock",
    "IntegrityReportImages",
    "IntegrityReportMissingPack",
    "IntegrityReportProblem",
    "IntegrityReportUnnamedPacks",
    "InterpreterContext",
    "Keep",
    "KeepInput",
    "ListeningPort",
    "ListeningPortProcess",
    "ListeningPorts",
    "MoveSettings",
    "NetworkInput",
    "NetworkPolicy",
    "OperationError",
    "OperationFilter",
    "OperationRecord",
    "PortLink",
    "ProcessRecord",
    "ProcessTableEntry",
    "PromotionKept",
    "PromotionRecord",
    "ProvenCheckpoint",
    "Reachability",
    "RefusedConnection",
    "RemovedData",
    "RemovedImages",
    "ResourcesInput",
    "RestoreSettings",
    "Retention",
    "RetentionInput",
    "RetentionPreview",
    "RetentionPreviewCheckpoints",
    "RetentionPreviewCheckpointsGoing",
    "RetentionPreviewSnapshots",
    "SandboxAffinity",
    "SandboxChange",
    "SandboxCheckpoint",
    "SandboxDurability",
    "SandboxDurabilityAtRisk",
    "SandboxEncryption",
    "SandboxFilter",
    "SandboxFlags",
    "SandboxNetwork",
    "SandboxOrigin",
    "SandboxOwner",
    "SandboxPlacement",
    "SandboxPlacementPassedOver",
    "SandboxRecord",
    "SandboxResources",
    "SandboxSettings",
    "SandboxStats",
    "SandboxUsage",
    "SandboxUsageLimits",
    "ScrubStatus",
    "ServerRecord",
    "SnapshotChange",
    "SnapshotDiff",
    "SnapshotDiffChange",
    "SnapshotFilter",
    "SnapshotProven",
    "SnapshotRecord",
    "SnapshotSettings",
    "SnapshotUnproven",
    "UploadResult",
    "UsageRecord",
    "UsageUsed",
    "WarmPool",
]


class ResourcesInput(TypedDict, total=False):
    cpus: float
    memory_mb: int
    processes: int
    disk_mb: int
    file_mb: int


class NetworkInput(TypedDict, total=False):
    #: Only these. Default: everything.
    allow: list[str]
    #: Not these, whatever allow says.
    deny: list[str]


class AffinityInput(TypedDict, total=False):
    #: Labels that a server must have: the sandbox runs on no other one.
    require: dict[str, str]
    #: Labels of servers that are tried first, those with the most of them before the others.
    prefer: dict[str, str]


class KeepInput(TypedDict, total=False):
    keep_last: int
    hourly: int
    daily: int


class RetentionInput(TypedDict, total=False):
    checkpoints: KeepInput
    snapshots: KeepInput


class SandboxSettings(TypedDict, total=False):
    name: str
    profile: str
    backend: str
    image: str
    #: User of its programs and files: NAME, UID, NAME:GROUP. Default: the image's user, then uid 1000.
    user: str
    inputs: dict[str, str]
    env: dict[str, str]
    labels: dict[str, str]
    #: Key to find the sandbox again; see the acquire operation.
    key: str
    #: Write a positive integer and s, m, h or d, for example 90s, 15m, 4h or 7d; at most 3650d.
    ttl: str
    #: When the lifetime ends: pause the sandbox, which stays until it is deleted (default), or delete it with its
    #: checkpoints.
    on_expiry: Literal["pause", "delete"]
    idle_timeout: float | str
    resources: ResourcesInput
    #: The network policy: none, open, or lists of domains, addresses and CIDRs.
    network: Literal["none", "open", "sandbox"] | NetworkInput
    enable_checkpoint: bool
    enable_idle_timeout_auto_checkpoint: bool
    enable_sandbox_handoff: bool
    on_disconnect: Literal["keep", "checkpoint"]
    #: None: no limit is promised.
    max_loss: int | str | None
    #: If the sandbox's server dies: wait until somebody resumes it (never, the default), or let another server resume
    #: it from its newest checkpoint at once (always).
    restart: Literal["never", "always"]
    affinity: AffinityInput
    #: None: the server's default.
    retention: RetentionInput | None
    filesystem_snapshot_name: str
    #: Ports whose preview URL anyone may open. Default: none; a preview is private.
    public_ports: list[int]
    #: Start the image's entrypoint and command as a detached process. Default: false.
    entrypoint: bool


@dataclass(frozen=True, kw_only=True)
class NetworkPolicy:
    allow: list[str] | None
    deny: list[str] | None


@dataclass(frozen=True, kw_only=True)
class SandboxResources:
    cpus: float | None
    memory_mb: int | None
    processes: int | None
    disk_mb: int | None
    file_mb: int | None


@dataclass(frozen=True, kw_only=True)
class SandboxFlags:
    enable_checkpoint: bool
    enable_idle_timeout_auto_checkpoint: bool
    enable_sandbox_handoff: bool
    on_disconnect: Literal["keep", "checkpoint"]


@dataclass(frozen=True, kw_only=True)
class SandboxOwner:
    instance_id: str
    url: str | None
    here: bool


@dataclass(frozen=True, kw_only=True)
class SandboxAffinity:
    require: dict[str, str] | None
    prefer: dict[str, str] | None


@dataclass(frozen=True, kw_only=True)
class SandboxCheckpoint:
    name: str
    size_bytes: int
    #: ISO 8601, UTC.
    created_at: str


@dataclass(frozen=True, kw_only=True)
class SandboxDurabilityAtRisk:
    #: ISO 8601, UTC.
    since: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class SandboxDurability:
    max_loss: int | str | None
    last_saved_at: str | None
    #: Since when and why max_loss is not met; only known to the server that runs the sandbox.
    at_risk: SandboxDurabilityAtRisk | None


@dataclass(frozen=True, kw_only=True)
class Keep:
    keep_last: int | None
    hourly: int | None
    daily: int | None


@dataclass(frozen=True, kw_only=True)
class Retention:
    checkpoints: Keep | None
    snapshots: Keep | None


@dataclass(frozen=True, kw_only=True)
class SandboxEncryption:
    held_by: Literal["server", "client"]
    key: str


@dataclass(frozen=True, kw_only=True)
class SandboxOrigin:
    sandbox_id: str | None
    snapshot_id: str | None


@dataclass(frozen=True, kw_only=True)
class SandboxPlacementPassedOver:
    backend: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class SandboxPlacement:
    backend: str
    strategy: str
    reason: str
    passed_over: list[SandboxPlacementPassedOver]


@dataclass(frozen=True, kw_only=True)
class SandboxRecord:
    id: str
    name: str | None
    state: Literal["creating", "restoring", "running", "saving", "destroying", "stored", "unreachable", "destroyed"]
    frozen: bool
    backend: str
    profile: str | None
    image: str | None
    #: None: the image's user, then uid 1000.
    user: str | None
    labels: dict[str, str]
    key: str | None
    spec_hash: str | None
    network: Literal["none", "open"] | NetworkPolicy
    resources: SandboxResources
    flags: SandboxFlags
    owner: SandboxOwner | None
    epoch: int | None
    #: ISO 8601, UTC.
    created_at: str
    expires_at: str | None
    #: When the lifetime ends: pause the sandbox, which stays until it is deleted (default), or delete it with its
    #: checkpoints.
    on_expiry: Literal["pause", "delete"]
    #: If the sandbox's server dies: wait until somebody resumes it (never, the default), or let another server resume
    #: it from its newest checkpoint at once (always).
    restart: Literal["never", "always"]
    #: The servers that it may run on; None: all.
    affinity: SandboxAffinity | None
    #: Seconds.
    idle_timeout: float
    idle_seconds: float | None
    #: Reasons why the sandbox is not idle, such as running processes; None: this server does not run it.
    busy_with: list[str] | None
    executing: bool
    clients: int
    checkpoint: SandboxCheckpoint | None
    durability: SandboxDurability
    #: The sandbox's own rules; None: the server's default.
    retention: Retention | None
    #: None: the server's default at the time of the save.
    encryption: SandboxEncryption | None
    #: Ports whose preview URL anyone may open.
    public_ports: list[int]
    origin: SandboxOrigin
    placement: SandboxPlacement | None
    details: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class DamagedSandbox:
    id: str
    #: The stored object or file that cannot be read.
    object: str
    message: str
    next_step: str


class SandboxFilter(TypedDict, total=False):
    limit: int
    state: Literal["creating", "restoring", "running", "saving", "destroying", "stored", "unreachable", "destroyed"]
    backend: str
    name: str
    key: str
    #: true: only sandboxes whose max_loss is not met; false: only the others.
    at_risk: bool | Literal["0", "1", "true", "false", ""]
    label: str | list[str]


class AcquireSettings(TypedDict, total=False):
    name: str
    profile: str
    backend: str
    image: str
    #: User of its programs and files: NAME, UID, NAME:GROUP. Default: the image's user, then uid 1000.
    user: str
    inputs: dict[str, str]
    env: dict[str, str]
    labels: dict[str, str]
    key: Required[str]
    #: Write a positive integer and s, m, h or d, for example 90s, 15m, 4h or 7d; at most 3650d.
    ttl: str
    #: When the lifetime ends: pause the sandbox, which stays until it is deleted (default), or delete it with its
    #: checkpoints.
    on_expiry: Literal["pause", "delete"]
    idle_timeout: float | str
    resources: ResourcesInput
    #: The network policy: none, open, or lists of domains, addresses and CIDRs.
    network: Literal["none", "open", "sandbox"] | NetworkInput
    enable_checkpoint: bool
    enable_idle_timeout_auto_checkpoint: bool
    enable_sandbox_handoff: bool
    on_disconnect: Literal["keep", "checkpoint"]
    #: None: no limit is promised.
    max_loss: int | str | None
    #: If the sandbox's server dies: wait until somebody resumes it (never, the default), or let another server resume
    #: it from its newest checkpoint at once (always).
    restart: Literal["never", "always"]
    affinity: AffinityInput
    #: None: the server's default.
    retention: RetentionInput | None
    filesystem_snapshot_name: str
    #: Ports whose preview URL anyone may open. Default: none; a preview is private.
    public_ports: list[int]
    #: Start the image's entrypoint and command as a detached process. Default: false.
    entrypoint: bool


class SandboxChange(TypedDict, total=False):
    name: str | None
    labels: dict[str, str]
    #: Lifetime from now; None: none, or the one of the profile.
    ttl: str | None
    #: When the lifetime ends: pause the sandbox, which stays until it is deleted (default), or delete it with its
    #: checkpoints.
    on_expiry: Literal["pause", "delete"]
    idle_timeout: float
    #: None: no limit is promised.
    max_loss: int | str | None
    #: None: the server's default.
    retention: RetentionInput | None
    #: None: any server. A running sandbox is not moved.
    affinity: AffinityInput | None
    #: All ports whose preview URL anyone may open.
    public_ports: list[int]
    #: The network policy: none, open, or lists of domains, addresses and CIDRs.
    network: Literal["none", "open", "sandbox"] | NetworkInput


@dataclass(frozen=True, kw_only=True)
class RemovedData:
    #: Data that only this sandbox used. It is removed from the store immediately.
    removed_bytes: int | None
    #: Data that other sandboxes or snapshots use or have used. Garbage collection removes it when nothing needs it.
    shared_bytes: int | None


@dataclass(frozen=True, kw_only=True)
class RefusedConnection:
    #: The host, as the program asked for it.
    name: str
    port: int
    #: None: the name was not resolved.
    address: str | None
    #: Why, such as: not in allow; deny *.example.com; private address.
    rule: str
    count: int
    #: ISO 8601, UTC.
    first_at: str
    #: ISO 8601, UTC.
    last_at: str


@dataclass(frozen=True, kw_only=True)
class SandboxNetwork:
    policy: Literal["none", "open"] | NetworkPolicy
    #: How it reaches the network: through the server's proxy, or by a network of its own. None: it is paused.
    way: Literal["none", "proxy", "own"] | None
    #: None: they do not go through the server.
    open_connections: int | None
    sent_bytes: int | None
    received_bytes: int | None
    refused_total: int
    #: Newest first, as far as this server knows; at most 200 kinds.
    refused: list[RefusedConnection]


@dataclass(frozen=True, kw_only=True)
class RetentionPreviewCheckpointsGoing:
    #: Name of the checkpoint, or id of the snapshot.
    name: str
    #: ISO 8601, UTC.
    created_at: str


@dataclass(frozen=True, kw_only=True)
class RetentionPreviewCheckpoints:
    kept: int
    going: list[RetentionPreviewCheckpointsGoing]


@dataclass(frozen=True, kw_only=True)
class RetentionPreviewSnapshots:
    #: Number kept: by the rule, or for one of the reasons below.
    kept: int
    #: Number kept because they have a name.
    named: int
    pinned: int
    #: Number beyond the rule but needed by a sandbox that was created from them.
    in_use: int
    going: list[RetentionPreviewCheckpointsGoing]


@dataclass(frozen=True, kw_only=True)
class RetentionPreview:
    #: The rules that were applied; the server's where none is given.
    retention: Retention
    checkpoints: RetentionPreviewCheckpoints
    snapshots: RetentionPreviewSnapshots
    #: Bytes that would be freed: the images, and blocks that nothing else needs.
    freed_bytes: int


class ForkSettings(TypedDict, total=False):
    name: str
    labels: dict[str, str]
    #: Write a positive integer and s, m, h or d, for example 90s, 15m, 4h or 7d; at most 3650d.
    ttl: str
    #: When the lifetime ends: pause the sandbox, which stays until it is deleted (default), or delete it with its
    #: checkpoints.
    on_expiry: Literal["pause", "delete"]
    idle_timeout: float | str
    #: None: no limit is promised.
    max_loss: int | str | None
    #: If the sandbox's server dies: wait until somebody resumes it (never, the default), or let another server resume
    #: it from its newest checkpoint at once (always).
    restart: Literal["never", "always"]
    affinity: AffinityInput
    #: None: the server's default.
    retention: RetentionInput | None
    env: dict[str, str]
    inputs: dict[str, str]
    #: Profile whose placement and secrets are used. Default: those of the captured sandbox.
    profile: str
    count: int


@dataclass(frozen=True, kw_only=True)
class PromotionKept:
    id: str
    message: str


@dataclass(frozen=True, kw_only=True)
class PromotionRecord:
    sandbox: SandboxRecord
    winner: str
    #: Snapshot of the state that the sandbox had before.
    former_snapshot_id: str
    #: The winner, and the other forks if that was requested.
    deleted: list[str]
    #: Sandboxes that should have been deleted, and why they were not.
    kept: list[PromotionKept]


class MoveSettings(TypedDict, total=False):
    backend: Required[str]
    #: Only for a portable (workspace) snapshot. Default: the captured sandbox's image; None: the backend's default.
    image: str | None
    #: Profile whose placement and secrets are used. Default: those of the captured sandbox.
    profile: str
    inputs: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class HandoffRecord:
    sandbox: SandboxRecord
    from_: str | None
    to: str
    elapsed_ms: float
    #: Milliseconds for which the sandbox did not run.
    paused_ms: float | None


@dataclass(frozen=True, kw_only=True)
class Expiry:
    applied: bool
    items: list[SandboxRecord]
    failed: list[PromotionKept]


@dataclass(frozen=True, kw_only=True)
class Reachability:
    reachable: bool
    state: Literal["creating", "restoring", "running", "saving", "destroying", "stored", "unreachable", "destroyed"]
    summary: str
    owner_url: str | None
    round_trip_ms: float | None


@dataclass(frozen=True, kw_only=True)
class SandboxStats:
    memory_bytes: float
    disk_bytes: float
    cpu_ms: float


@dataclass(frozen=True, kw_only=True)
class ProcessRecord:
    id: str
    pid: int
    state: Literal["running", "exited"]
    #: None: unknown.
    command: list[str] | None
    #: None: unknown.
    started_at: str | None
    exit_code: int | None
    signal: str | None
    pty: bool
    detached: bool
    output_start: int
    output_end: int
    acknowledged: int


@dataclass(frozen=True, kw_only=True)
class ProcessTableEntry:
    pid: int
    parent_pid: int
    uid: int
    state: str
    resident_bytes: int
    cpu_ms: float
    command: str


@dataclass(frozen=True, kw_only=True)
class CellResultTable:
    columns: list[str]
    rows: list[list[str | float | bool | None]]
    row_count: int
    column_count: int


@dataclass(frozen=True, kw_only=True)
class CellResult:
    #: The value of the cell's last expression.
    main: bool
    text: str | None
    html: str | None
    markdown: str | None
    svg: str | None
    #: Base64.
    png: str | None
    #: Base64.
    jpeg: str | None
    #: Base64.
    pdf: str | None
    latex: str | None
    json: Any
    javascript: str | None
    table: CellResultTable | None
    #: The data of a figure: `type` (line, scatter, bar, pie, box_and_whisker, superchart), `title`, `elements`.
    chart: dict[str, Any] | None
    #: Other formats, by their media type.
    extra: dict[str, Any] | None
    #: Formats that are too large.
    omitted: list[str] | None


@dataclass(frozen=True, kw_only=True)
class CellAnswerException:
    name: str
    value: str
    traceback: str


@dataclass(frozen=True, kw_only=True)
class CellAnswer:
    context_id: str
    cell_id: str
    execution_count: int
    #: died: the interpreter ended during the cell, with its variables.
    status: Literal["ok", "error", "interrupted", "died"]
    stdout: str
    stderr: str
    results: list[CellResult]
    exception: CellAnswerException | None
    #: There was more output than `max_output_bytes`.
    truncated: bool
    timed_out: bool
    #: The exit code of an interpreter that died.
    exit_code: int | None
    signal: str | None
    elapsed_ms: float


@dataclass(frozen=True, kw_only=True)
class InterpreterContext:
    #: The default context of a language has the language's name.
    id: str
    language: Literal["python", "javascript", "typescript", "bash"]
    #: The folder that it started in; None: the sandbox's default.
    cwd: str | None
    #: exited: its variables are lost; restart it.
    state: Literal["idle", "busy", "exited"]
    pid: int
    #: None: unknown.
    started_at: str | None


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    name: str
    kind: Literal["file", "folder", "symlink", "other"]
    mode: int
    uid: int
    gid: int
    size_bytes: int
    modified_at: str
    link_target: str | None


@dataclass(frozen=True, kw_only=True)
class UploadResult:
    files: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class ListeningPortProcess:
    pid: int
    command: str


@dataclass(frozen=True, kw_only=True)
class ListeningPort:
    port: int
    #: The address inside that the program listens on.
    address: str
    #: The process that listens. None: unknown.
    process: ListeningPortProcess | None
    #: Whether anyone may open the URL.
    public: bool
    #: Where a browser opens the port.
    url: str


@dataclass(frozen=True, kw_only=True)
class ListeningPorts:
    items: list[ListeningPort]


@dataclass(frozen=True, kw_only=True)
class PortLink:
    url: str
    #: None: the port is public, and the URL has no end.
    expires_at: str | None


@dataclass(frozen=True, kw_only=True)
class SnapshotProven:
    #: ISO 8601, UTC.
    at: str
    engine: str


@dataclass(frozen=True, kw_only=True)
class SnapshotUnproven:
    #: ISO 8601, UTC.
    at: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class SnapshotRecord:
    id: str
    name: str | None
    state: Literal["ready", "damaged", "missing"]
    problem: str | None
    mode: Literal["full", "filesystem", "workspace", "metadata"]
    kind: str
    backend: str
    profile: str | None
    labels: dict[str, str]
    sandbox_id: str
    sandbox_name: str | None
    parent: str | None
    children: list[str]
    sandboxes: list[str]
    reason: Literal["request", "fork", "named", "move", "promote"]
    #: Cannot be deleted and is exempt from retention until it is unpinned.
    pinned: bool
    #: None: the server's default when it was taken.
    encryption: SandboxEncryption | None
    size_bytes: int
    #: ISO 8601, UTC.
    created_at: str
    #: Time and engine of the last successful test restore; None if there was none or the last one failed.
    proven: SnapshotProven | None
    #: Time of and reason for the failure of the last test restore.
    unproven: SnapshotUnproven | None
    details: dict[str, str]


class SnapshotSettings(TypedDict, total=False):
    name: str
    labels: dict[str, str]
    #: Default: the most that the backend supports. workspace: can be restored on every backend.
    mode: Literal["full", "filesystem", "workspace"]


class SnapshotFilter(TypedDict, total=False):
    limit: int
    sandbox_id: str
    name: str
    mode: Literal["full", "filesystem", "workspace", "metadata"]
    state: Literal["ready", "damaged", "missing"]
    label: str | list[str]


class SnapshotChange(TypedDict, total=False):
    name: str | None
    labels: dict[str, str]
    #: A pinned snapshot cannot be deleted and is exempt from retention.
    pinned: bool


class RestoreSettings(TypedDict, total=False):
    name: str
    labels: dict[str, str]
    #: Write a positive integer and s, m, h or d, for example 90s, 15m, 4h or 7d; at most 3650d.
    ttl: str
    #: When the lifetime ends: pause the sandbox, which stays until it is deleted (default), or delete it with its
    #: checkpoints.
    on_expiry: Literal["pause", "delete"]
    idle_timeout: float | str
    #: None: no limit is promised.
    max_loss: int | str | None
    #: If the sandbox's server dies: wait until somebody resumes it (never, the default), or let another server resume
    #: it from its newest checkpoint at once (always).
    restart: Literal["never", "always"]
    #: Default: that of the captured sandbox.
    affinity: AffinityInput
    #: None: the server's default.
    retention: RetentionInput | None
    env: dict[str, str]
    inputs: dict[str, str]
    #: Profile whose placement and secrets are used. Default: those of the captured sandbox.
    profile: str
    #: Default: the backend that it was captured on.
    backend: str
    #: Only for a portable (workspace) snapshot. Default: the captured sandbox's image; None: the backend's default.
    image: str | None


@dataclass(frozen=True, kw_only=True)
class CarriedFiles:
    scope: Literal["all", "workspace", "none"]
    count: int | None
    bytes: int | None
    truncated: bool


@dataclass(frozen=True, kw_only=True)
class CarriedHardLinks:
    kept: int
    lost: int


@dataclass(frozen=True, kw_only=True)
class Carried:
    snapshot_id: str
    kind: str
    from_: str
    backend: str
    loadable: bool
    why_not: str | None
    backends: list[str]
    memory: Literal["kept", "lost"]
    processes: Literal["kept", "lost"]
    files: CarriedFiles
    hard_links: CarriedHardLinks | None
    xattrs: CarriedHardLinks | None
    env: Literal["kept"]
    secrets: list[str]
    network: Literal["none", "kept", "the backend has none"]
    limits: Literal["none", "kept", "the backend has none"]
    notes: list[str]


@dataclass(frozen=True, kw_only=True)
class SnapshotDiffChange:
    path: str
    change: Literal["added", "changed", "removed"]
    kind: Literal["file", "folder", "symlink", "other"]
    size_before: int | None
    size_after: int | None


@dataclass(frozen=True, kw_only=True)
class SnapshotDiff:
    from_: str
    to: str
    added: int
    changed: int
    removed: int
    changes: list[SnapshotDiffChange]
    truncated: bool


@dataclass(frozen=True, kw_only=True)
class ImageRecord:
    #: Digest of its manifest for this platform: its identity.
    digest: str
    names: list[str]
    #: Unpacked size of all its layers; other images may share them.
    size_bytes: int
    layers: int
    #: ISO 8601, UTC.
    pulled_at: str
    #: ISO 8601, UTC.
    last_used_at: str
    #: Whether a running sandbox of this machine uses it.
    in_use: bool
    environment: dict[str, str]
    user: str | None
    working_folder: str | None
    entrypoint: list[str] | None
    command: list[str] | None


@dataclass(frozen=True, kw_only=True)
class RemovedImages:
    #: Digests of the images that were removed.
    removed: list[str]
    freed_bytes: int


@dataclass(frozen=True, kw_only=True)
class IntegrityReportImages:
    whole: int
    damaged: int
    unreadable: int
    missing: int
    locked: int


@dataclass(frozen=True, kw_only=True)
class IntegrityReportProblem:
    #: Name in the store.
    image: str
    state: Literal["damaged", "unreadable", "missing", "locked"]
    problem: str
    sandbox_id: str | None
    checkpoint: str | None
    snapshot_id: str | None
    #: The sandbox resumes from this image.
    current: bool


@dataclass(frozen=True, kw_only=True)
class IntegrityReportDamagedBlock:
    #: None: the block is in the image itself.
    pack: str | None
    offset: int
    size_bytes: int
    problem: str
    #: All images that need the block, including images that store a difference to it.
    images: list[str]


@dataclass(frozen=True, kw_only=True)
class IntegrityReportMissingPack:
    pack: str
    images: list[str]


@dataclass(frozen=True, kw_only=True)
class IntegrityReportUnnamedPacks:
    count: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class IntegrityReport:
    #: Nothing is damaged, unreadable or missing.
    ok: bool
    #: ISO 8601, UTC.
    started_at: str
    #: ISO 8601, UTC.
    ended_at: str
    images: IntegrityReportImages
    #: Blocks that were read. A block that several images share is read once.
    blocks: int
    #: Bytes that were read from the store.
    bytes: int
    #: Every image with a problem.
    problems: list[IntegrityReportProblem]
    damaged_blocks: list[IntegrityReportDamagedBlock]
    missing_packs: list[IntegrityReportMissingPack]
    #: Packs that no image references: garbage, or parts of a save in progress. None if only some images were checked.
    unnamed_packs: IntegrityReportUnnamedPacks | None
    damaged_block_count: int
    #: The lists are truncated; there is more damage.
    truncated: bool
    #: How to repair the damage.
    next_step: str | None


@dataclass(frozen=True, kw_only=True)
class ProvenCheckpoint:
    sandbox_id: str
    checkpoint: str
    proven: SnapshotProven


@dataclass(frozen=True, kw_only=True)
class ScrubStatus:
    running: bool
    #: A scrub was stopped; the next one continues where it stopped.
    paused: bool
    done_bytes: int
    #: Interval of automatic scrubs in seconds; None: never.
    every_seconds: float | None
    #: Read at most this many MB per second; None: no limit.
    rate_mb: float | None
    #: Last full pass of any server of the store.
    last_full_pass_at: str | None
    #: Result of the last full pass of this server.
    last: IntegrityReport | None


@dataclass(frozen=True, kw_only=True)
class WarmPool:
    #: Maximum size of the pool; 0: no pool.
    max: int
    ready: int
    preparing: int
    #: Requests served from the pool since the server started.
    handed_out: int
    #: Requests that found the pool empty and waited for a new sandbox.
    missed: int
    #: Pooled sandboxes that failed to start or were unusable.
    failed: int
    #: Pooled sandboxes that expired unused.
    expired: int


@dataclass(frozen=True, kw_only=True)
class Engine:
    version: str
    #: None if the engine was not tested on this machine yet.
    platform: str | None
    #: How the server drives the engine's sandboxes: messages to their control sockets, or runsc commands. None if the
    #: engine was not tested on this machine yet.
    control: Literal["messages", "commands"] | None
    source: str
    #: default: new sandboxes use it. used: a checkpoint needed it. installed: nothing has needed it. ready: the default
    #: after a restart.
    state: Literal["default", "used", "installed", "fetching", "ready", "failed"]
    message: str | None


@dataclass(frozen=True, kw_only=True)
class ServerRecord:
    version: str
    instance_id: str | None
    store: str | None
    default_backend: str
    draining: bool
    sandboxes: int
    #: Sandboxes that use no CPU because nothing runs in them.
    dozing: int
    max_sandboxes: int
    #: None if the default backend has no warm pool.
    warm_pool: WarmPool | None
    #: The gVisor engines of this server, side by side. A checkpoint is restored by the one that wrote it.
    engines: list[Engine]
    #: Scope of the caller's key.
    scope: Literal["read", "use", "admin"]
    #: Whether the caller sent a key; a server without keys needs none.
    has_key: bool


@dataclass(frozen=True, kw_only=True)
class BackendRecord:
    name: str
    default: bool
    ok: bool
    summary: str
    remedy: str | None
    capabilities: dict[str, str | bool]


@dataclass(frozen=True, kw_only=True)
class InstanceHandoff:
    sandbox_id: str
    to: str
    refused: str | None


@dataclass(frozen=True, kw_only=True)
class InstanceRecord:
    id: str
    url: str | None
    here: bool
    alive: bool
    #: Its operator's labels, for the affinity of sandboxes.
    labels: dict[str, str]
    frozen: bool | None
    frozen_reason: str | None
    owns: list[str]
    wanted: list[str]
    handoffs: list[InstanceHandoff]


@dataclass(frozen=True, kw_only=True)
class OperationError:
    code: str
    message: str
    hint: str


@dataclass(frozen=True, kw_only=True)
class OperationRecord:
    id: str
    kind: Literal["create", "acquire", "checkpoint", "resume", "snapshot", "prove", "verify", "scrub", "restore", "fork", "rewind", "promote", "move", "handoff", "recreate", "destroy", "pull"]
    state: Literal["running", "done", "failed"]
    sandbox_id: str | None
    snapshot_id: str | None
    phase: str | None
    phases: dict[str, float]
    done_bytes: int | None
    total_bytes: int | None
    #: ISO 8601, UTC.
    started_at: str
    ended_at: str | None
    elapsed_ms: float
    #: Milliseconds for which the processes inside were stopped, as measured by this server; None: none, or unknown.
    paused_ms: float | None
    error: OperationError | None
    result: Any


class OperationFilter(TypedDict, total=False):
    limit: int
    sandbox_id: str
    kind: Literal["create", "acquire", "checkpoint", "resume", "snapshot", "prove", "verify", "scrub", "restore", "fork", "rewind", "promote", "move", "handoff", "recreate", "destroy", "pull"]
    state: Literal["running", "done", "failed"]


@dataclass(frozen=True, kw_only=True)
class EventRecord:
    cursor: str
    #: ISO 8601, UTC.
    time: str
    type: str
    sandbox_id: str | None
    data: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class UsageUsed:
    #: Seconds since 1970, UTC.
    time: list[float]
    memory_bytes: list[int]
    disk_bytes: list[int]
    #: CPUs used since the previous point; None if unknown.
    cpus: list[float | None]


@dataclass(frozen=True, kw_only=True)
class UsageRecord:
    sandbox_id: str
    used: UsageUsed


@dataclass(frozen=True, kw_only=True)
class SandboxUsageLimits:
    cpus: float | None
    memory_bytes: int | None
    disk_bytes: int | None


@dataclass(frozen=True, kw_only=True)
class SandboxUsage:
    sandbox_id: str
    used: UsageUsed
    #: None: none, or unknown.
    limits: SandboxUsageLimits
