"""The SDK without ``async``. Generated from the asynchronous classes by scripts/generate_sync.py."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._client import AsyncSandboxer
from ._compare import Comparison
from ._files import AsyncSandboxFiles
from ._folders import UnpackResult
from ._images import AsyncImages
from ._interpreter import MAX_OUTPUT, AsyncInterpreter, CellEvent, CellExecution, CellOptions, InterpreterOptions
from ._options import (
    Bytes,
    CallOptions,
    Command,
    ConnectionOptions,
    Language,
    LongCallOptions,
    Path,
    PtyOptions,
    SpawnOptions,
    Stream,
    WatchOptions,
)
from ._portal import iterate, run
from ._ports import AsyncForwardedPort
from ._process import MAX_OUTPUT_BYTES, AsyncSandboxProcess, Detached, ExecResult, OutputLine
from ._process_link import ExitStatus
from ._process_queues import OutputChunk
from ._sandbox import (
    AcquireOptions,
    AsyncSandbox,
    AttachOptions,
    ChangeOptions,
    CreateOptions,
    ExecOptions,
    ForkOptions,
    ListOptions,
    MoveOptions,
    RestoreOptions,
    SnapshotOptions,
)
from ._session import AsyncSandboxSession, Closed, Event, ExecutionResult, SessionOutput
from ._snapshots import AsyncSnapshots
from .errors import SandboxerError
from .models import (
    BackendRecord,
    Carried,
    DamagedSandbox,
    EventRecord,
    Expiry,
    FileEntry,
    HandoffRecord,
    ImageRecord,
    InstanceRecord,
    IntegrityReport,
    InterpreterContext,
    ListeningPort,
    OperationFilter,
    OperationRecord,
    PortLink,
    ProcessRecord,
    ProcessTableEntry,
    PromotionRecord,
    ProvenCheckpoint,
    Reachability,
    RemovedData,
    RemovedImages,
    RetentionInput,
    RetentionPreview,
    SandboxNetwork,
    SandboxRecord,
    SandboxStats,
    SandboxUsage,
    ScrubStatus,
    ServerRecord,
    SnapshotChange,
    SnapshotDiff,
    SnapshotFilter,
    SnapshotRecord,
    UploadResult,
    UsageRecord,
)

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class SandboxProcess:
    """A process in a sandbox. Its output is read by one of ``chunks``, ``lines``, ``collect`` and ``wait``, once; a
    lost connection is restored automatically. A process whose output is not read blocks when 1 MiB of it waits, unless
    it was detached. At the end of ``with`` it is killed and dropped."""

    _async: AsyncSandboxProcess

    @classmethod
    def _of(cls, inner: AsyncSandboxProcess) -> Self:
        made = cls.__new__(cls)
        made._async = inner
        return made

    @property
    def id(self) -> str:
        return self._async.id

    @property
    def pid(self) -> int:
        return self._async.pid

    @property
    def offset(self) -> int:
        """How far its output was read: ``sandbox.process(id, offset=...)`` continues exactly here."""
        return self._async.offset

    @property
    def exit(self) -> ExitStatus | None:
        """Its exit, once its output was read to the end."""
        return self._async.exit

    def chunks(self) -> Iterator[OutputChunk]:
        """Its output as it arrives, as bytes. Leaving the loop detaches: the process keeps running."""
        return iterate(self._async.chunks())

    def lines(self, stream: Stream | None = None) -> Iterator[str]:
        """Its output as lines, of both streams or of one."""
        return iterate(self._async.lines(stream))

    def output_lines(self) -> Iterator[OutputLine]:
        """Its output as lines with their streams; an unterminated rest is the last line."""
        return iterate(self._async.output_lines())

    def collect(self, *, max_output_bytes: int = MAX_OUTPUT_BYTES) -> ExecResult:
        """Reads everything to the end. A failing program is a result, not an error."""
        return run(self._async.collect(max_output_bytes=max_output_bytes))

    def wait(self) -> ExitStatus:
        """Waits until it ends, and drops its output."""
        return run(self._async.wait())

    def write(self, data: Bytes) -> None:
        """Writes to its stdin; returns when the process has read it."""
        run(self._async.write(data))

    def close_stdin(self) -> None:
        """Closes its stdin after everything that was written."""
        run(self._async.close_stdin())

    def kill(self, signal: str | int = "SIGKILL", **options: Unpack[CallOptions]) -> None:
        """Sends a signal, by default SIGKILL, to it and its children."""
        run(self._async.kill(signal, **options))

    def resize(self, rows: int, columns: int, **options: Unpack[CallOptions]) -> None:
        """Resizes its terminal."""
        run(self._async.resize(rows, columns, **options))

    def detach(self) -> Detached:
        """Stops reading; the process keeps running. Returns what ``sandbox.process`` needs to attach again."""
        return run(self._async.detach())

    def info(self) -> ProcessRecord:
        """The server's record of it."""
        return run(self._async.info())

    def release(self, **options: Unpack[CallOptions]) -> None:
        """Kills it if it runs, and deletes its output."""
        run(self._async.release(**options))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        run(self._async.__aexit__(kind, error, traceback))


class SandboxFiles:
    """The files of a sandbox. Paths are absolute."""

    _async: AsyncSandboxFiles

    @classmethod
    def _of(cls, inner: AsyncSandboxFiles) -> Self:
        made = cls.__new__(cls)
        made._async = inner
        return made

    def read(self, path: str, *, offset: int | None = None, length: int | None = None) -> bytes:
        """Reads a file, or a part of it."""
        return run(self._async.read(path, offset=offset, length=length))

    def read_text(self, path: str, *, offset: int | None = None, length: int | None = None) -> str:
        """As UTF-8."""
        return run(self._async.read_text(path, offset=offset, length=length))

    def read_stream(self, path: str, *, offset: int | None = None, length: int | None = None) -> Iterator[bytes]:
        """Piece by piece, for files that do not fit into memory."""
        return iterate(self._async.read_stream(path, offset=offset, length=length))

    def write(
        self,
        path: str,
        data: Bytes,
        *,
        mode: int | None = None,
        parents: bool = True,
        **options: Unpack[CallOptions],
    ) -> None:
        """Writes a file, creating or replacing it. ``parents`` creates missing folders; ``mode`` is such as 0o644."""
        run(self._async.write(path, data, mode=mode, parents=parents, **options))

    def list(self, path: str) -> builtins.list[FileEntry]:
        """Lists a folder, sorted by name."""
        return run(self._async.list(path))

    def stat(self, path: str) -> FileEntry:
        """The metadata of a file, a folder or a link."""
        return run(self._async.stat(path))

    def exists(self, path: str) -> bool:
        """Whether a file, a folder or a link exists."""
        return run(self._async.exists(path))

    def remove(self, path: str, *, recursive: bool = False, **options: Unpack[CallOptions]) -> None:
        """Deletes a file; a folder only with ``recursive``."""
        run(self._async.remove(path, recursive=recursive, **options))

    def mkdir(self, path: str, *, parents: bool = True, **options: Unpack[CallOptions]) -> None:
        """Creates a folder and its parents."""
        run(self._async.mkdir(path, parents=parents, **options))

    def rename(self, source: str, to: str, **options: Unpack[CallOptions]) -> None:
        """Renames or moves a file or a folder."""
        run(self._async.rename(source, to, **options))

    def download_tar(self, path: str, *, skip_unreadable: bool = False) -> Iterator[bytes]:
        """A file or folder with its contents, as a tar archive, piece by piece."""
        return iterate(self._async.download_tar(path, skip_unreadable=skip_unreadable))

    def upload_tar(self, path: str, tar: Bytes, **options: Unpack[CallOptions]) -> UploadResult:
        """Unpacks a tar archive into a folder."""
        return run(self._async.upload_tar(path, tar, **options))

    def upload_folder(
        self,
        local_folder: Path,
        path: str,
        *,
        filter: Callable[[str], bool] | None = None,
        **options: Unpack[CallOptions],
    ) -> UploadResult:
        """Uploads the contents of a local folder to a folder in the sandbox, which is created if missing. ``filter``
        gets paths relative to the folder, and says which to include."""
        return run(self._async.upload_folder(local_folder, path, filter=filter, **options))

    def download_folder(self, path: str, local_folder: Path, *, skip_unreadable: bool = False) -> UnpackResult:
        """Downloads the contents of a folder in the sandbox to a local folder, which is created if missing. Nothing is
        written outside it."""
        return run(self._async.download_folder(path, local_folder, skip_unreadable=skip_unreadable))


class Interpreter:
    """The code interpreters of a sandbox: contexts with variables that persist between cells."""

    _async: AsyncInterpreter

    @classmethod
    def _of(cls, inner: AsyncInterpreter) -> Self:
        made = cls.__new__(cls)
        made._async = inner
        return made

    def run(
        self,
        code: str,
        *,
        on_event: Callable[[CellEvent], object] | None = None,
        max_output_bytes: int = MAX_OUTPUT,
        **options: Unpack[CellOptions],
    ) -> CellExecution:
        """Runs a cell to its end. An exception of the code is in ``error``; only failures of the call are raised."""
        return run(self._async.run(code, on_event=on_event, max_output_bytes=max_output_bytes, **options))

    def stream(self, code: str, **options: Unpack[CellOptions]) -> Iterator[CellEvent]:
        """Runs a cell and yields its events. Follows the cell if its sandbox is paused or moves
        meanwhile."""
        return iterate(self._async.stream(code, **options))

    def create_context(
        self,
        *,
        language: str | None = None,
        cwd: str | None = None,
        **options: Unpack[CallOptions],
    ) -> InterpreterContext:
        """Starts an interpreter with its own variables. ``cwd``: the folder that it starts in."""
        return run(self._async.create_context(language=language, cwd=cwd, **options))

    def contexts(self) -> list[InterpreterContext]:
        """All interpreters of the sandbox, oldest first."""
        return run(self._async.contexts())

    def restart(self, context: str | None = None, **options: Unpack[CallOptions]) -> InterpreterContext:
        """Starts the interpreter of a context again, without its variables."""
        return run(self._async.restart(context, **options))

    def interrupt(self, context: str | None = None, **options: Unpack[CallOptions]) -> None:
        """Interrupts the running cell, like Ctrl-C."""
        run(self._async.interrupt(context, **options))

    def delete_context(self, context: str | None = None, **options: Unpack[CallOptions]) -> None:
        """Ends an interpreter."""
        run(self._async.delete_context(context, **options))


class Snapshots:
    """The snapshots of a server. A name works wherever an id is expected."""

    _async: AsyncSnapshots

    @classmethod
    def _of(cls, inner: AsyncSnapshots) -> Self:
        made = cls.__new__(cls)
        made._async = inner
        return made

    def list(self, **filter: Unpack[SnapshotFilter]) -> Iterator[SnapshotRecord]:
        """Newest first."""
        return iterate(self._async.list(**filter))

    def get(self, id: str, *, verify: bool | None = None) -> SnapshotRecord:
        """With ``verify``, checks its data; ``state`` and ``problem`` then have the result."""
        return run(self._async.get(id, verify=verify))

    def update(self, id: str, **change: Unpack[SnapshotChange]) -> SnapshotRecord:
        """Changes its name, its labels, or whether it is pinned."""
        return run(self._async.update(id, **change))

    def delete(self, id: str, **options: Unpack[CallOptions]) -> None:
        """Fails while a live sandbox depends on it."""
        run(self._async.delete(id, **options))

    def prove(self, id: str, **options: Unpack[LongCallOptions]) -> SnapshotRecord:
        """Test-restores it in isolation; ``proven`` and ``unproven`` have the result."""
        return run(self._async.prove(id, **options))

    def verify(self, id: str, **options: Unpack[LongCallOptions]) -> IntegrityReport:
        """Checks every block of it; the report lists damage and every image that it affects."""
        return run(self._async.verify(id, **options))

    def explain(self, id: str, *, backend: str | None = None) -> Carried:
        """Previews what a restore would and would not keep, without doing it."""
        return run(self._async.explain(id, backend=backend))

    def diff(self, id: str, to: str, *, limit: int | None = None) -> SnapshotDiff:
        """The changes from a snapshot to another one, or to a sandbox as it is now: ``sandbox:ID``."""
        return run(self._async.diff(id, to, limit=limit))


class Images:
    """The container images on a server's machine. A name works wherever a digest is expected."""

    _async: AsyncImages

    @classmethod
    def _of(cls, inner: AsyncImages) -> Self:
        made = cls.__new__(cls)
        made._async = inner
        return made

    def list(self) -> builtins.list[ImageRecord]:
        """Most recently used first."""
        return run(self._async.list())

    def get(self, image: str) -> ImageRecord:
        """One image."""
        return run(self._async.get(image))

    def pull(self, image: str, **options: Unpack[LongCallOptions]) -> ImageRecord:
        """Asks the registry, even if an image with this name exists. Creating a sandbox pulls a missing image
        automatically."""
        return run(self._async.pull(image, **options))

    def import_archive(self, archive: Bytes, *, name: str | None = None, **options: Unpack[CallOptions]) -> ImageRecord:
        """Imports an archive that ``docker save``, buildah or skopeo wrote; ``name`` overrides the name in it."""
        return run(self._async.import_archive(archive, name=name, **options))

    def delete(self, image: str) -> RemovedImages:
        """Deletes a name, and with the last name the image. Fails while a running sandbox uses it."""
        return run(self._async.delete(image))

    def prune(self) -> RemovedImages:
        """Deletes every image that no running sandbox uses."""
        return run(self._async.prune())


class Sandboxer:
    """A server, and requests about it as a whole. The sandbox class creates sandboxes."""

    _async: AsyncSandboxer

    def __init__(self, **options: Unpack[ConnectionOptions]) -> None:
        self._async = AsyncSandboxer(**options)

    @classmethod
    def _of(cls, inner: AsyncSandboxer) -> Self:
        made = cls.__new__(cls)
        made._async = inner
        return made

    @property
    def snapshots(self) -> Snapshots:
        return Snapshots._of(self._async.snapshots)

    @property
    def images(self) -> Images:
        return Images._of(self._async.images)

    @property
    def url(self) -> str:
        """The server's URL."""
        return self._async.url

    def call(
        self,
        name: str,
        *,
        params: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        **options: Unpack[LongCallOptions],
    ) -> Any:
        """Calls any route of the HTTP API by the name of its operation, in its wire form."""
        return run(self._async.call(name, params=params, query=query, body=body, **options))

    def info(self) -> ServerRecord:
        """The server: its version, its store, how many sandboxes it runs."""
        return run(self._async.info())

    def events(
        self,
        *,
        sandbox_id: str | None = None,
        type: str | None = None,
        cursor: str | None = None,
        on_connection: Callable[[bool, str | None], object] | None = None,
    ) -> Iterator[EventRecord]:
        """Events as they happen. ``cursor`` of the last received event continues after it; default: only new events.
        ``on_connection`` is called when the connection is established and when it is lost."""
        return iterate(self._async.events(sandbox_id=sandbox_id, type=type, cursor=cursor, on_connection=on_connection))

    def operations(self, **filter: Unpack[OperationFilter]) -> Iterator[OperationRecord]:
        """Running and finished operations, newest first."""
        return iterate(self._async.operations(**filter))

    def operation(self, id: str, *, wait: float | None = None) -> OperationRecord:
        """With ``wait``, waits up to that many seconds, at most 60, for it to end."""
        return run(self._async.operation(id, wait=wait))

    def expire(self, *, apply: bool = False) -> Expiry:
        """Lists expired sandboxes; with ``apply`` deletes them."""
        return run(self._async.expire(apply=apply))

    def scrub(self, *, rate_mb: float | None = None, **options: Unpack[LongCallOptions]) -> IntegrityReport:
        """Checks all data in the server's store; needs the scope ``admin``. ``rate_mb`` 0: no limit."""
        return run(self._async.scrub(rate_mb=rate_mb, **options))

    def scrub_status(self) -> ScrubStatus:
        """Whether a scrub runs, and what the last one found."""
        return run(self._async.scrub_status())

    def stop_scrub(self) -> None:
        """The next scrub continues where it stopped."""
        run(self._async.stop_scrub())

    def profiles(self) -> list[dict[str, Any]]:
        """The profiles, with the field names of their files."""
        return run(self._async.profiles())

    def profile(self, name: str) -> dict[str, Any]:
        """One profile, as in its file."""
        return run(self._async.profile(name))

    def backends(self) -> list[BackendRecord]:
        """The backends of this server, with what each can do."""
        return run(self._async.backends())

    def instances(self) -> list[InstanceRecord]:
        """All servers that share the store."""
        return run(self._async.instances())

    def usage(self, *, points: int | None = None, since: float | None = None) -> list[UsageRecord]:
        """The newest resource usage points of every sandbox of this server. ``since``: seconds since 1970."""
        return run(self._async.usage(points=points, since=since))

    def close(self) -> None:
        """Closes its connections. Sandboxes keep running."""
        run(self._async.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        run(self._async.__aexit__(kind, error, traceback))


class ForwardedPort:
    """A local port that leads to a port inside a sandbox, until it is closed."""

    _async: AsyncForwardedPort

    @classmethod
    def _of(cls, inner: AsyncForwardedPort) -> Self:
        made = cls.__new__(cls)
        made._async = inner
        return made

    @property
    def address(self) -> str:
        return self._async.address

    @property
    def port(self) -> int:
        return self._async.port

    def close(self) -> None:
        """Closes the local port and all connections."""
        run(self._async.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        run(self._async.__aexit__(kind, error, traceback))


class SandboxSession:
    """A client's session with one sandbox. It ends with ``checkpoint``, ``destroy``, ``close``, or when the server ends
    it."""

    _async: AsyncSandboxSession

    @classmethod
    def _of(cls, inner: AsyncSandboxSession) -> Self:
        made = cls.__new__(cls)
        made._async = inner
        return made

    @property
    def id(self) -> str:
        return self._async.id

    @property
    def token(self) -> str | None:
        """Returned once, at creation. Anyone who has it can attach."""
        return self._async.token

    @classmethod
    def create(cls, configuration: dict[str, Any] | None = None, **options: Unpack[ConnectionOptions]) -> Self:
        """Creates a sandbox. ``configuration`` is the first message of the protocol. Returns when the sandbox runs."""
        return cls._of(run(AsyncSandboxSession.create(configuration, **options)))

    @classmethod
    def attach(
        cls,
        sandbox_id: str,
        *,
        token: str | None = None,
        checkpoint: str | None = None,
        **options: Unpack[ConnectionOptions],
    ) -> Self:
        """Attaches to a sandbox, running or paused; ``checkpoint`` names an older one. Returns when the sandbox
        runs."""
        return cls._of(run(AsyncSandboxSession.attach(sandbox_id, token=token, checkpoint=checkpoint, **options)))

    def run(
        self,
        language: Language,
        code: str,
        *,
        on_output: Callable[[SessionOutput], object] | None = None,
    ) -> ExecutionResult:
        """Runs code as a separate process and waits for its end. A failing program is a result, not an error. If the
        call is cancelled, the execution is killed."""
        return run(self._async.run(language, code, on_output=on_output))

    def reconnect(
        self,
        *,
        execution_id: str | None = None,
        offset: int | None = None,
        on_output: Callable[[SessionOutput], object] | None = None,
    ) -> ExecutionResult:
        """Replays unseen output of the current or last execution, then follows it to its end."""
        return run(self._async.reconnect(execution_id=execution_id, offset=offset, on_output=on_output))

    def stdin(self, data: str) -> None:
        """Sends text to the running execution. The result shows in the events."""
        run(self._async.stdin(data))

    def kill(self) -> None:
        """Kills the running execution; the call to ``run`` ends with its result."""
        run(self._async.kill())

    def checkpoint(self) -> None:
        """Saves everything and ends the session; ``attach`` resumes the sandbox, on this server or another."""
        run(self._async.checkpoint())

    def snapshot_filesystem(self, name: str) -> None:
        """Saves the files under a name, for ``filesystem_snapshot_name`` of new sandboxes."""
        run(self._async.snapshot_filesystem(name))

    def destroy(self) -> None:
        """Deletes the sandbox and its checkpoints."""
        run(self._async.destroy())

    def close(self) -> None:
        """Disconnects. The sandbox and its executions keep running."""
        run(self._async.close())

    def wait_closed(self) -> Closed:
        """Waits until the session has ended. Never fails."""
        return run(self._async.wait_closed())

    def events(self) -> Iterator[Event]:
        """Every event of the server, from the first step of the loop until the session has ended."""
        return iterate(self._async.events())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        run(self._async.__aexit__(kind, error, traceback))


class Sandbox:
    """A sandbox. Calls go to the server that runs it, and resume it if it is paused; a handle survives checkpoints,
    handoffs and restarts of servers. ``with`` deletes the sandbox at its end, or saves it with ``keep``."""

    _async: AsyncSandbox

    @classmethod
    def _of(cls, inner: AsyncSandbox) -> Self:
        made = cls.__new__(cls)
        made._async = inner
        return made

    @property
    def id(self) -> str:
        return self._async.id

    @property
    def token(self) -> str | None:
        """Returned once, at the creation. Anyone who has it can attach."""
        return self._async.token

    @property
    def tier(self) -> str | None:
        """How ``acquire`` got it: ``reattached``, ``restored`` or ``fresh``."""
        return self._async.tier

    @property
    def carried(self) -> Carried | None:
        """The parts that ``restore`` and ``move`` kept."""
        return self._async.carried

    @property
    def record(self) -> SandboxRecord:
        """The last record from the server; ``refresh`` reads it again."""
        return self._async.record

    @property
    def client(self) -> Sandboxer:
        return Sandboxer._of(self._async.client)

    @property
    def files(self) -> SandboxFiles:
        return SandboxFiles._of(self._async.files)

    @classmethod
    def create(cls, *, client: Sandboxer | None = None, **options: Unpack[CreateOptions]) -> Self:
        """Creates a sandbox, by default on http://127.0.0.1:8080."""
        return cls._of(run(AsyncSandbox.create(client=None if client is None else client._async, **options)))

    @classmethod
    def acquire(cls, *, client: Sandboxer | None = None, **options: Unpack[AcquireOptions]) -> Self:
        """The sandbox with this ``key``: the existing one, one restored from its newest snapshot, or a new one;
        ``tier`` says which."""
        return cls._of(run(AsyncSandbox.acquire(client=None if client is None else client._async, **options)))

    @classmethod
    def attach(cls, id: str, *, client: Sandboxer | None = None, **options: Unpack[AttachOptions]) -> Self:
        """A handle on an existing sandbox, running or paused. It is resumed when it is used, or by ``resume``."""
        return cls._of(run(AsyncSandbox.attach(id, client=None if client is None else client._async, **options)))

    @classmethod
    def restore(cls, snapshot_id: str, *, client: Sandboxer | None = None, **options: Unpack[RestoreOptions]) -> Self:
        """Creates a new sandbox from a snapshot, given by id or name."""
        return cls._of(run(AsyncSandbox.restore(snapshot_id, client=None if client is None else client._async, **options)))

    @classmethod
    def list(
        cls,
        *,
        client: Sandboxer | None = None,
        on_damaged: Callable[[DamagedSandbox], object] | None = None,
        **options: Unpack[ListOptions],
    ) -> Iterator[Self]:
        """The sandboxes of the server and its store, newest first. ``on_damaged`` is called for those whose record
        cannot be read."""
        return (cls._of(item) for item in iterate(AsyncSandbox.list(client=None if client is None else client._async, on_damaged=on_damaged, **options)))

    def refresh(self) -> SandboxRecord:
        """Reads its record again."""
        return run(self._async.refresh())

    def exec(self, command: Command, **options: Unpack[ExecOptions]) -> ExecResult:
        """Runs a shell line, an argv, or ``Code``, and collects its output. A failing program is a result, not an
        error. If the call is cancelled, the process is killed."""
        return run(self._async.exec(command, **options))

    def spawn(self, command: Command, **options: Unpack[SpawnOptions]) -> SandboxProcess:
        """Starts a process and returns it, without reading its output."""
        return SandboxProcess._of(run(self._async.spawn(command, **options)))

    def pty(
        self,
        command: Command = ("bash",),
        *,
        rows: int = 24,
        columns: int = 80,
        **options: Unpack[PtyOptions],
    ) -> SandboxProcess:
        """Starts a process in a terminal; a shell by default."""
        return SandboxProcess._of(run(self._async.pty(command, rows=rows, columns=columns, **options)))

    def process(self, id: str, *, offset: int | None = None, **options: Unpack[WatchOptions]) -> SandboxProcess:
        """Attaches to a process that runs or has run, from an offset; default: unread output."""
        return SandboxProcess._of(run(self._async.process(id, offset=offset, **options)))

    def interpreter(self, **options: Unpack[InterpreterOptions]) -> Interpreter:
        """Runs code in interpreters that keep their variables: between cells, and when the sandbox is paused or
        forked."""
        return Interpreter._of(self._async.interpreter(**options))

    def processes(self) -> builtins.list[ProcessRecord]:
        """Processes that were started over HTTP, oldest first."""
        return run(self._async.processes())

    def process_table(self) -> builtins.list[ProcessTableEntry]:
        """All processes inside."""
        return run(self._async.process_table())

    def ports(self) -> builtins.list[ListeningPort]:
        """The ports on which programs inside listen, with their URLs."""
        return run(self._async.ports())

    def port_url(self, port: int, *, expires: str | None = None) -> PortLink:
        """A URL that opens a port in a browser without a key, for an hour or until ``expires``. It resumes a paused
        sandbox."""
        return run(self._async.port_url(port, expires=expires))

    def withdraw_port_urls(self, port: int, **options: Unpack[CallOptions]) -> None:
        """Withdraws all URLs that ``port_url`` created for a port. Open connections stay open."""
        run(self._async.withdraw_port_urls(port, **options))

    def forward_port(
        self,
        port: int,
        *,
        local_port: int | None = None,
        local_address: str = "127.0.0.1",
        on_error: Callable[[SandboxerError], object] | None = None,
    ) -> ForwardedPort:
        """Listens on a local port, and passes each connection on to a port inside. ``local_port`` 0: a free one;
        default: the same. ``on_error`` is called if a connection could not be opened."""
        return ForwardedPort._of(run(self._async.forward_port(port, local_port=local_port, local_address=local_address, on_error=on_error)))

    def stats(self) -> SandboxStats:
        """Its current memory, disk and CPU use."""
        return run(self._async.stats())

    def usage(self, *, since: float | None = None) -> SandboxUsage:
        """Its resource usage in the last half hour, in columns of equal length, and its limits. ``since``: seconds
        since 1970."""
        return run(self._async.usage(since=since))

    def network(self) -> SandboxNetwork:
        """How it reaches the network, and the connections that were refused."""
        return run(self._async.network())

    def reachability(self) -> Reachability:
        """Checks whether it answers, and how fast."""
        return run(self._async.reachability())

    def events(
        self,
        *,
        type: str | None = None,
        cursor: str | None = None,
        on_connection: Callable[[bool, str | None], object] | None = None,
    ) -> Iterator[EventRecord]:
        """Its events as they happen; see ``events`` of the client."""
        return iterate(self._async.events(type=type, cursor=cursor, on_connection=on_connection))

    def snapshot(self, **options: Unpack[SnapshotOptions]) -> SnapshotRecord:
        """Takes a snapshot; the sandbox keeps running."""
        return run(self._async.snapshot(**options))

    def snapshots(self) -> Iterator[SnapshotRecord]:
        """Its snapshots, newest first."""
        return iterate(self._async.snapshots())

    def diff(self, snapshot_id: str, *, limit: int | None = None) -> SnapshotDiff:
        """The files that changed in it since a snapshot."""
        return run(self._async.diff(snapshot_id, limit=limit))

    def fork(self, **options: Unpack[ForkOptions]) -> builtins.list[Sandbox]:
        """Creates new sandboxes from its current state; it keeps running."""
        return [Sandbox._of(one) for one in run(self._async.fork(**options))]

    def move(self, **options: Unpack[MoveOptions]) -> Sandbox:
        """Moves it to another backend with its workspace. It keeps its id, name, key and token."""
        return Sandbox._of(run(self._async.move(**options)))

    def rewind(self, snapshot_id: str, **options: Unpack[LongCallOptions]) -> SandboxRecord:
        """Rewinds it to a snapshot, in place."""
        return run(self._async.rewind(snapshot_id, **options))

    def promote(
        self,
        *,
        into: str | None = None,
        discard_others: bool = False,
        **options: Unpack[LongCallOptions],
    ) -> PromotionRecord:
        """Gives its state to the sandbox that it was forked or restored from, and deletes it. That sandbox keeps its
        id, name, key, token and ports. ``into``: the id of an ancestor further back. ``discard_others``: deletes the
        other forks too."""
        return run(self._async.promote(into=into, discard_others=discard_others, **options))

    def compare(self, others: Sequence[Sandbox], command: Command | None = None, *, limit: int = 1000) -> Comparison:
        """Compares it with others, usually its forks: changed files, running processes, ports, usage, and the result of
        a command that runs in each at the same time. Paused sandboxes are resumed. At most ``limit`` files are listed
        for each."""
        return run(self._async.compare([one._async for one in others], command, limit=limit))

    def checkpoint(self, *, leave_running: bool = False, **options: Unpack[LongCallOptions]) -> SandboxRecord:
        """Pauses it: saves everything and stops it. Any server can resume it; using this handle resumes it. With
        ``leave_running`` it keeps running, and resumes from this checkpoint if its server dies."""
        return run(self._async.checkpoint(leave_running=leave_running, **options))

    def pause(self, **options: Unpack[LongCallOptions]) -> SandboxRecord:
        """The same as ``checkpoint()``."""
        return run(self._async.pause(**options))

    def resume(self, *, checkpoint: str | None = None, **options: Unpack[LongCallOptions]) -> SandboxRecord:
        """Resumes it on the client's server; if another server runs it, that server hands it off."""
        return run(self._async.resume(checkpoint=checkpoint, **options))

    def handoff(self, to: str, **options: Unpack[LongCallOptions]) -> HandoffRecord:
        """Moves it to another server of the store, given by URL or id. This handle follows it."""
        return run(self._async.handoff(to, **options))

    def recreate(self, **options: Unpack[LongCallOptions]) -> SandboxRecord:
        """Creates it again with the same id and settings; its state is lost."""
        return run(self._async.recreate(**options))

    def update(self, **options: Unpack[ChangeOptions]) -> SandboxRecord:
        """Changes its name, labels, lifetime, idle timeout, max loss, retention, network or public ports."""
        return run(self._async.update(**options))

    def extend_ttl(self, duration: str, **options: Unpack[CallOptions]) -> SandboxRecord:
        """Sets its remaining lifetime, such as ``4h``."""
        return run(self._async.extend_ttl(duration, **options))

    def verify(self, *, checkpoint: str | None = None, **options: Unpack[LongCallOptions]) -> IntegrityReport:
        """Checks every block of its checkpoints, or of one, without resuming it."""
        return run(self._async.verify(checkpoint=checkpoint, **options))

    def prove(self, *, checkpoint: str | None = None, **options: Unpack[LongCallOptions]) -> ProvenCheckpoint:
        """Test-restores its newest checkpoint, or another one, in isolation."""
        return run(self._async.prove(checkpoint=checkpoint, **options))

    def preview_retention(self, retention: RetentionInput | None = None) -> RetentionPreview:
        """Previews which saved states given or current retention rules would remove, and how many bytes."""
        return run(self._async.preview_retention(retention))

    def destroy(self, **options: Unpack[CallOptions]) -> RemovedData:
        """Deletes it and its checkpoints; returns how many bytes are freed, and how many are shared."""
        return run(self._async.destroy(**options))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        run(self._async.__aexit__(kind, error, traceback))
