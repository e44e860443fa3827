"""A sandbox: its lifecycle, its states, its records."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._calls import SandboxCalls
from ._client import AsyncSandboxer
from ._compare import Comparison, compare
from ._decode import decode, decode_all
from ._files import AsyncSandboxFiles
from ._interpreter import AsyncInterpreter, InterpreterOptions
from ._options import (
    CallOptions,
    Command,
    ConnectionOptions,
    HandleOptions,
    LongCallOptions,
    PtyOptions,
    SpawnOptions,
    WatchOptions,
    split,
)
from ._pages import every_item
from ._ports import AsyncForwardedPort, Connection, connect_port
from ._process import MAX_OUTPUT_BYTES, AsyncSandboxProcess, ExecResult
from ._processes import Processes
from ._transport import Wire
from .errors import SandboxerError, failure, is_code
from .models import (
    AcquireSettings,
    Carried,
    DamagedSandbox,
    EventRecord,
    ForkSettings,
    HandoffRecord,
    IntegrityReport,
    ListeningPort,
    MoveSettings,
    PortLink,
    ProcessRecord,
    ProcessTableEntry,
    PromotionRecord,
    ProvenCheckpoint,
    Reachability,
    RemovedData,
    RestoreSettings,
    RetentionInput,
    RetentionPreview,
    SandboxChange,
    SandboxFilter,
    SandboxNetwork,
    SandboxRecord,
    SandboxSettings,
    SandboxStats,
    SandboxUsage,
    SnapshotDiff,
    SnapshotRecord,
    SnapshotSettings,
)

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class ExecOptions(SpawnOptions, total=False):
    #: Limit of the collected result; default: 10 MiB.
    max_output_bytes: int


class CreateOptions(SandboxSettings, LongCallOptions, HandleOptions, ConnectionOptions, total=False):
    pass


class AcquireOptions(AcquireSettings, LongCallOptions, HandleOptions, ConnectionOptions, total=False):
    pass


class RestoreOptions(RestoreSettings, LongCallOptions, HandleOptions, ConnectionOptions, total=False):
    pass


class AttachOptions(HandleOptions, ConnectionOptions, total=False):
    pass


class ListOptions(SandboxFilter, HandleOptions, ConnectionOptions, total=False):
    pass


class SnapshotOptions(SnapshotSettings, LongCallOptions, total=False):
    pass


class ForkOptions(ForkSettings, LongCallOptions, HandleOptions, total=False):
    pass


class MoveOptions(MoveSettings, LongCallOptions, HandleOptions, total=False):
    pass


class ChangeOptions(SandboxChange, CallOptions, total=False):
    pass


class AsyncSandbox:
    """A sandbox. Calls go to the server that runs it, and resume it if it is paused; a handle survives checkpoints,
    handoffs and restarts of servers. ``with`` deletes the sandbox at its end, or saves it with ``keep``."""

    id: str
    #: Returned once, at the creation. Anyone who has it can attach.
    token: str | None
    #: How ``acquire`` got it: ``reattached``, ``restored`` or ``fresh``.
    tier: str | None
    #: The parts that ``restore`` and ``move`` kept.
    carried: Carried | None
    #: The last record from the server; ``refresh`` reads it again.
    record: SandboxRecord
    client: AsyncSandboxer
    files: AsyncSandboxFiles

    def __init__(
        self, client: AsyncSandboxer, answer: dict[str, Any], owns_client: bool, handle: HandleOptions
    ) -> None:
        self.id = answer["id"]
        self.token = answer.get("token")
        self.tier = answer.get("tier")
        self.carried = decode(Carried, answer["carried"]) if answer.get("carried") else None
        self.record = decode(SandboxRecord, answer)
        self.client = client
        self._owns_client = owns_client
        self._keep = handle.get("keep", False)
        roaming = {name: handle[name] for name in ("auto_resume", "follow_owner") if name in handle}
        reconnecting = {name: handle[name] for name in ("reconnect", "silence") if name in handle}
        self._calls = SandboxCalls(client._transport, self.id, **roaming)
        self.files = AsyncSandboxFiles(self._calls)
        self._processes = Processes(self._calls, self.token, **reconnecting)

    @classmethod
    async def create(cls, *, client: AsyncSandboxer | None = None, **options: Unpack[CreateOptions]) -> Self:
        """Creates a sandbox, by default on http://127.0.0.1:8080."""
        call, handle, connection, settings = split(options, LongCallOptions, HandleOptions, ConnectionOptions)
        return await cls._from("createSandbox", {"body": settings}, client, call, handle, connection)

    @classmethod
    async def acquire(cls, *, client: AsyncSandboxer | None = None, **options: Unpack[AcquireOptions]) -> Self:
        """The sandbox with this ``key``: the existing one, one restored from its newest snapshot, or a new one;
        ``tier`` says which."""
        call, handle, connection, settings = split(options, LongCallOptions, HandleOptions, ConnectionOptions)
        return await cls._from("acquireSandbox", {"body": settings}, client, call, handle, connection)

    @classmethod
    async def attach(cls, id: str, *, client: AsyncSandboxer | None = None, **options: Unpack[AttachOptions]) -> Self:
        """A handle on an existing sandbox, running or paused. It is resumed when it is used, or by ``resume``."""
        handle, connection, _ = split(options, HandleOptions, ConnectionOptions)
        return await cls._from("getSandbox", {"params": {"id": id}}, client, {}, handle, connection)

    @classmethod
    async def restore(
        cls, snapshot_id: str, *, client: AsyncSandboxer | None = None, **options: Unpack[RestoreOptions]
    ) -> Self:
        """Creates a new sandbox from a snapshot, given by id or name."""
        call, handle, connection, settings = split(options, LongCallOptions, HandleOptions, ConnectionOptions)
        request = {"params": {"id": snapshot_id}, "body": settings}
        return await cls._from("restoreSnapshot", request, client, call, handle, connection)

    @classmethod
    async def list(
        cls,
        *,
        client: AsyncSandboxer | None = None,
        on_damaged: Callable[[DamagedSandbox], object] | None = None,
        **options: Unpack[ListOptions],
    ) -> AsyncIterator[Self]:
        """The sandboxes of the server and its store, newest first. ``on_damaged`` is called for those whose record
        cannot be read."""
        handle, connection, filter = split(options, HandleOptions, ConnectionOptions)
        found = client or AsyncSandboxer(**connection)

        def on_page(page: dict[str, Any]) -> None:
            # Servers of earlier releases do not report any.
            for damaged in page.get("damaged", []):
                if on_damaged is not None:
                    on_damaged(decode(DamagedSandbox, damaged))

        async for record in every_item(found._transport, "listSandboxes", filter, on_page):
            yield cls(found, record, False, handle)  # type: ignore[arg-type]

    async def refresh(self) -> SandboxRecord:
        """Reads its record again."""
        return self._note(await self._ask("getSandbox"))

    async def exec(self, command: Command, **options: Unpack[ExecOptions]) -> ExecResult:
        """Runs a shell line, an argv, or ``Code``, and collects its output. A failing program is a result, not an
        error. If the call is cancelled, the process is killed."""
        limit = options.pop("max_output_bytes", MAX_OUTPUT_BYTES)
        process = await self._processes.start(command, dict(options))
        try:
            return await process.collect(max_output_bytes=limit)
        except asyncio.CancelledError:
            with suppress(Exception):
                await asyncio.wait_for(process.kill(), 5)
            raise

    async def spawn(self, command: Command, **options: Unpack[SpawnOptions]) -> AsyncSandboxProcess:
        """Starts a process and returns it, without reading its output."""
        return await self._processes.start(command, dict(options))

    async def pty(
        self, command: Command = ("bash",), *, rows: int = 24, columns: int = 80, **options: Unpack[PtyOptions]
    ) -> AsyncSandboxProcess:
        """Starts a process in a terminal; a shell by default."""
        return await self._processes.start(command, {**options, "pty": (rows, columns)})

    async def process(
        self, id: str, *, offset: int | None = None, **options: Unpack[WatchOptions]
    ) -> AsyncSandboxProcess:
        """Attaches to a process that runs or has run, from an offset; default: unread output."""
        return await self._processes.attach(id, offset, dict(options))

    def interpreter(self, **options: Unpack[InterpreterOptions]) -> AsyncInterpreter:
        """Runs code in interpreters that keep their variables: between cells, and when the sandbox is paused or
        forked."""
        return AsyncInterpreter(self._calls, options)

    async def processes(self) -> builtins.list[ProcessRecord]:
        """Processes that were started over HTTP, oldest first."""
        return decode_all(ProcessRecord, (await self._calls.call("listProcesses"))["items"])

    async def process_table(self) -> builtins.list[ProcessTableEntry]:
        """All processes inside."""
        return decode_all(ProcessTableEntry, (await self._calls.call("processTable"))["items"])

    async def ports(self) -> builtins.list[ListeningPort]:
        """The ports on which programs inside listen, with their URLs."""
        return decode_all(ListeningPort, (await self._calls.call("listPorts"))["items"])

    async def port_url(self, port: int, *, expires: str | None = None) -> PortLink:
        """A URL that opens a port in a browser without a key, for an hour or until ``expires``. It resumes a paused
        sandbox."""
        body = {"port": port, **({} if expires is None else {"expires": expires})}
        return decode(PortLink, await self._ask("createPortLink", body=body))

    async def withdraw_port_urls(self, port: int, **options: Unpack[CallOptions]) -> None:
        """Withdraws all URLs that ``port_url`` created for a port. Open connections stay open."""
        await self._calls.call("withdrawPortLinks", query={"port": port}, wire=Wire(**options))

    async def connect_port(self, port: int) -> Connection:
        """Opens a TCP connection to a port inside, as asyncio streams."""
        return await connect_port(self.client._transport, self.id, self.token, port)

    async def forward_port(
        self,
        port: int,
        *,
        local_port: int | None = None,
        local_address: str = "127.0.0.1",
        on_error: Callable[[SandboxerError], object] | None = None,
    ) -> AsyncForwardedPort:
        """Listens on a local port, and passes each connection on to a port inside. ``local_port`` 0: a free one;
        default: the same. ``on_error`` is called if a connection could not be opened."""
        forwarded = AsyncForwardedPort(lambda: asyncio.ensure_future(self.connect_port(port)), on_error)
        return await forwarded._listen(local_address, port if local_port is None else local_port)

    async def stats(self) -> SandboxStats:
        """Its current memory, disk and CPU use."""
        return decode(SandboxStats, await self._calls.call("sandboxStats"))

    async def usage(self, *, since: float | None = None) -> SandboxUsage:
        """Its resource usage in the last half hour, in columns of equal length, and its limits. ``since``: seconds
        since 1970."""
        return decode(SandboxUsage, await self._calls.call("sandboxUsage", query={"since": since}))

    async def network(self) -> SandboxNetwork:
        """How it reaches the network, and the connections that were refused."""
        return decode(SandboxNetwork, await self._calls.call("sandboxNetwork"))

    async def reachability(self) -> Reachability:
        """Checks whether it answers, and how fast."""
        return decode(Reachability, await self._ask("reachability"))

    def events(
        self,
        *,
        type: str | None = None,
        cursor: str | None = None,
        on_connection: Callable[[bool, str | None], object] | None = None,
    ) -> AsyncIterator[EventRecord]:
        """Its events as they happen; see ``events`` of the client."""
        return self.client.events(sandbox_id=self.id, type=type, cursor=cursor, on_connection=on_connection)

    async def snapshot(self, **options: Unpack[SnapshotOptions]) -> SnapshotRecord:
        """Takes a snapshot; the sandbox keeps running."""
        call, settings = split(options, LongCallOptions)
        answer = await self._calls.call("createSnapshot", body=settings, wire=Wire(**call))
        return decode(SnapshotRecord, answer)

    def snapshots(self) -> AsyncIterator[SnapshotRecord]:
        """Its snapshots, newest first."""
        return self.client.snapshots.list(sandbox_id=self.id)

    async def diff(self, snapshot_id: str, *, limit: int | None = None) -> SnapshotDiff:
        """The files that changed in it since a snapshot."""
        query = {"to": f"sandbox:{self.id}", "limit": limit}
        return decode(SnapshotDiff, await self._calls.call("diffSnapshots", params={"id": snapshot_id}, query=query))

    async def fork(self, **options: Unpack[ForkOptions]) -> builtins.list[AsyncSandbox]:
        """Creates new sandboxes from its current state; it keeps running."""
        call, handle, settings = split(options, LongCallOptions, HandleOptions)
        answer = await self._calls.call("forkSandbox", body=settings, wire=Wire(**call))
        return [type(self)(self.client, record, False, handle) for record in answer["items"]]  # type: ignore[arg-type]

    async def move(self, **options: Unpack[MoveOptions]) -> AsyncSandbox:
        """Moves it to another backend with its workspace. It keeps its id, name, key and token."""
        call, handle, settings = split(options, LongCallOptions, HandleOptions)
        record = await self._calls.call("moveSandbox", body=settings, wire=Wire(**call))
        return type(self)(self.client, {**record, "token": self.token}, False, handle)  # type: ignore[arg-type]

    async def rewind(self, snapshot_id: str, **options: Unpack[LongCallOptions]) -> SandboxRecord:
        """Rewinds it to a snapshot, in place."""
        body = {"snapshot_id": snapshot_id}
        return self._note(await self._calls.call("rewindSandbox", body=body, wire=Wire(**options)))

    async def promote(
        self, *, into: str | None = None, discard_others: bool = False, **options: Unpack[LongCallOptions]
    ) -> PromotionRecord:
        """Gives its state to the sandbox that it was forked or restored from, and deletes it. That sandbox keeps its
        id, name, key, token and ports. ``into``: the id of an ancestor further back. ``discard_others``: deletes the
        other forks too."""
        id = into or self.record.origin.sandbox_id
        if id is None:
            raise failure(
                "bad_request", "The sandbox was created from scratch, so there is no original.", "Promote a fork."
            )
        body = {"winner": self.id, "discard_others": discard_others}
        original = SandboxCalls(self.client._transport, id)
        return decode(PromotionRecord, await original.call("promoteSandbox", body=body, wire=Wire(**options)))

    async def compare(
        self, others: Sequence[AsyncSandbox], command: Command | None = None, *, limit: int = 1000
    ) -> Comparison:
        """Compares it with others, usually its forks: changed files, running processes, ports, usage, and the result of
        a command that runs in each at the same time. Paused sandboxes are resumed. At most ``limit`` files are listed
        for each."""
        return await compare([self, *others], command, limit)

    async def checkpoint(self, *, leave_running: bool = False, **options: Unpack[LongCallOptions]) -> SandboxRecord:
        """Pauses it: saves everything and stops it. Any server can resume it; using this handle resumes it. With
        ``leave_running`` it keeps running, and resumes from this checkpoint if its server dies."""
        wire = Wire(**options)
        if leave_running:
            return self._note(await self._calls.call("checkpointSandbox", body={"leave_running": True}, wire=wire))
        async with self._calls.putting_down():
            try:
                return self._note(await self._calls.call("checkpointSandbox", wire=wire))
            except SandboxerError as error:
                # The response was lost, not the checkpoint.
                if is_code(error, "server_unreachable") and (await self.refresh()).state == "stored":
                    return self.record
                raise

    async def pause(self, **options: Unpack[LongCallOptions]) -> SandboxRecord:
        """The same as ``checkpoint()``."""
        return await self.checkpoint(**options)

    async def resume(self, *, checkpoint: str | None = None, **options: Unpack[LongCallOptions]) -> SandboxRecord:
        """Resumes it on the client's server; if another server runs it, that server hands it off."""
        return self._note(await self._calls.resume(checkpoint, Wire(**options)))

    async def handoff(self, to: str, **options: Unpack[LongCallOptions]) -> HandoffRecord:
        """Moves it to another server of the store, given by URL or id. This handle follows it."""
        answer = await self._calls.call("handoffSandbox", body={"to": to}, wire=Wire(**options))
        self._note(answer["sandbox"])
        return decode(HandoffRecord, answer)

    async def recreate(self, **options: Unpack[LongCallOptions]) -> SandboxRecord:
        """Creates it again with the same id and settings; its state is lost."""
        return self._note(await self._calls.call("recreateSandbox", wire=Wire(**options)))

    async def update(self, **options: Unpack[ChangeOptions]) -> SandboxRecord:
        """Changes its name, labels, lifetime, idle timeout, max loss, retention, network or public ports."""
        call, change = split(options, CallOptions)
        return self._note(await self._calls.call("updateSandbox", body=change, wire=Wire(**call)))

    async def extend_ttl(self, duration: str, **options: Unpack[CallOptions]) -> SandboxRecord:
        """Sets its remaining lifetime, such as ``4h``."""
        return self._note(await self._calls.call("extendTtl", body={"duration": duration}, wire=Wire(**options)))

    async def verify(self, *, checkpoint: str | None = None, **options: Unpack[LongCallOptions]) -> IntegrityReport:
        """Checks every block of its checkpoints, or of one, without resuming it."""
        body = {} if checkpoint is None else {"checkpoint": checkpoint}
        return decode(IntegrityReport, await self._ask("verifySandbox", body=body, wire=Wire(**options)))

    async def prove(self, *, checkpoint: str | None = None, **options: Unpack[LongCallOptions]) -> ProvenCheckpoint:
        """Test-restores its newest checkpoint, or another one, in isolation."""
        body = {} if checkpoint is None else {"checkpoint": checkpoint}
        return decode(ProvenCheckpoint, await self._ask("proveSandbox", body=body, wire=Wire(**options)))

    async def preview_retention(self, retention: RetentionInput | None = None) -> RetentionPreview:
        """Previews which saved states given or current retention rules would remove, and how many bytes."""
        query = {
            f"keep_{name}": _rule_text(retention.get(name))  # type: ignore[arg-type]
            for name in ("checkpoints", "snapshots")
            if retention is not None
        }
        return decode(RetentionPreview, await self._ask("previewRetention", query=query))

    async def destroy(self, **options: Unpack[CallOptions]) -> RemovedData:
        """Deletes it and its checkpoints; returns how many bytes are freed, and how many are shared."""
        async with self._calls.putting_down():
            answer = await self._calls.call("destroySandbox", wire=Wire(**options))
        # After a lost first response there is nothing more to report.
        return decode(RemovedData, answer or {})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if not self._keep:
                await self.destroy()
            elif (await self.refresh()).state not in ("stored", "destroyed"):
                await self.checkpoint()
        except SandboxerError as problem:
            if not is_code(problem, "sandbox_not_found", "sandbox_destroyed"):
                raise
        finally:
            if self._owns_client:
                await self.client.close()

    @classmethod
    async def _from(
        cls,
        name: str,
        request: dict[str, Any],
        client: AsyncSandboxer | None,
        call: dict[str, Any],
        handle: Any,
        connection: Any,
    ) -> Self:
        found = client or AsyncSandboxer(**connection)
        return cls(found, await found._transport.call(name, **request, wire=Wire(**call)), client is None, handle)

    async def _ask(self, name: str, **more: Any) -> Any:
        """Asks the client's own server."""
        return await self.client._transport.call(name, params={"id": self.id}, **more)

    def _note(self, answer: Any) -> SandboxRecord:
        self.record = decode(SandboxRecord, answer)
        return self.record


def _rule_text(keep: dict[str, int] | None) -> str:
    """As a query; a missing rule uses the server's default."""
    if keep is None:
        return "server"
    words = {"keep_last": "last", "hourly": "hourly", "daily": "daily"}
    return ",".join(f"{words[name]}={count}" for name, count in keep.items())
