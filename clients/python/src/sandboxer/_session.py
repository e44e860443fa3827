"""The WebSocket protocol: one client's session with one sandbox (docs/reference/websocket.md)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus, WebSocketException

from ._options import ConnectionOptions, Language, Stream
from ._tables import ERRORS
from ._transport import Transport, address
from .errors import SandboxerError, error_of_body, failure, unreachable

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

Result = TypeVar("Result")
Event = dict[str, Any]
#: Inspects each event and the error that it is, if any: a value ends the wait, a raise fails it.
Step = Callable[[Event, "SandboxerError | None"], "Result | None"]

_REFUSALS = ("SANDBOX_EXECUTION_ERROR", "SANDBOX_EXECUTION_UNSUPPORTED_LANGUAGE_ERROR")


@dataclass(frozen=True)
class SessionOutput:
    stream: Stream
    data: str
    execution_id: str
    #: Pass it to ``reconnect`` to continue after this.
    offset: int


@dataclass(frozen=True)
class ExecutionResult:
    stdout: str
    stderr: str
    #: None if a signal ended it.
    exit_code: int | None
    execution_id: str | None


@dataclass(frozen=True)
class Closed:
    """The close code of the protocol."""

    code: int
    reason: str


class AsyncSandboxSession:
    """A client's session with one sandbox. It ends with ``checkpoint``, ``destroy``, ``close``, or when the server ends
    it."""

    id: str
    #: Returned once, at creation. Anyone who has it can attach.
    token: str | None

    def __init__(self, socket: ClientConnection) -> None:
        self.id = ""
        self.token = None
        self._socket = socket
        self._listeners: list[Callable[[Event, SandboxerError | None], object]] = []
        self._error_status: str | None = None
        self._last_error: SandboxerError | None = None
        self._following = False
        self._waiting: set[asyncio.Future[Any]] = set()
        self._reader: asyncio.Task[Closed] | None = None

    @classmethod
    async def create(cls, configuration: dict[str, Any] | None = None, **options: Unpack[ConnectionOptions]) -> Self:
        """Creates a sandbox. ``configuration`` is the first message of the protocol. Returns when the sandbox runs."""
        session = await cls._open("/create", {}, options)

        def step(event: Event, error: SandboxerError | None) -> bool | None:
            if event["event"] == "sandbox_id":
                session.id, session.token = event["sandbox_id"], event["sandbox_token"]
            elif error is not None:
                raise error
            return _has_status(event, "SANDBOX_RUNNING") or None

        return await session._begin(step, {**(configuration or {}), "extensions": True})

    @classmethod
    async def attach(
        cls,
        sandbox_id: str,
        *,
        token: str | None = None,
        checkpoint: str | None = None,
        **options: Unpack[ConnectionOptions],
    ) -> Self:
        """Attaches to a sandbox, running or paused; ``checkpoint`` names an older one. Returns when the sandbox
        runs."""
        # Behind a balancer the request may reach any server: the one that has the sandbox serves it.
        query = {"extensions": 1, "relay": "allow", "sandbox_token": token, "checkpoint": checkpoint}
        session = await cls._open("/attach/{id}", {"id": sandbox_id}, options, query)
        session.id, session.token = sandbox_id, token

        def step(event: Event, error: SandboxerError | None) -> bool | None:
            if _has_status(event, "SANDBOX_IN_USE"):
                raise failure("sandbox_in_use", f"Another client is attached to {sandbox_id}.")
            if _has_status(event, "SANDBOX_NOT_FOUND"):
                raise failure("sandbox_not_found", f"There is no sandbox {sandbox_id}.")
            if error is not None:
                raise error
            return _has_status(event, "SANDBOX_RUNNING") or None

        return await session._begin(step, None)

    async def run(
        self, language: Language, code: str, *, on_output: Callable[[SessionOutput], object] | None = None
    ) -> ExecutionResult:
        """Runs code as a separate process and waits for its end. A failing program is a result, not an error. If the
        call is cancelled, the execution is killed."""
        try:
            return await self._follow(_Watch(on_output).step, {"language": language, "code": code})
        except asyncio.CancelledError:
            await self._send({"action": "kill_process"})
            raise

    async def reconnect(
        self,
        *,
        execution_id: str | None = None,
        offset: int | None = None,
        on_output: Callable[[SessionOutput], object] | None = None,
    ) -> ExecutionResult:
        """Replays unseen output of the current or last execution, then follows it to its end."""
        message = {"action": "reconnect", "execution_id": execution_id, "offset": offset}
        given = {name: value for name, value in message.items() if value is not None}
        return await self._follow(_Watch(on_output, replay=True).step, given)

    async def stdin(self, data: str) -> None:
        """Sends text to the running execution. The result shows in the events."""
        await self._send({"event": "stdin", "data": data})

    async def kill(self) -> None:
        """Kills the running execution; the call to ``run`` ends with its result."""
        await self._ask(
            {"action": "kill_process"}, "SANDBOX_EXECUTION_FORCE_KILLED", "SANDBOX_EXECUTION_FORCE_KILL_ERROR"
        )

    async def checkpoint(self) -> None:
        """Saves everything and ends the session; ``attach`` resumes the sandbox, on this server or another."""
        failures = ("SANDBOX_CHECKPOINT_ERROR", "SANDBOX_EXECUTION_IN_PROGRESS_ERROR")
        await self._ask({"action": "checkpoint"}, "SANDBOX_CHECKPOINTED", *failures)
        await self.wait_closed()

    async def snapshot_filesystem(self, name: str) -> None:
        """Saves the files under a name, for ``filesystem_snapshot_name`` of new sandboxes."""
        message = {"action": "snapshot_filesystem", "name": name}
        await self._ask(message, "SANDBOX_FILESYSTEM_SNAPSHOT_CREATED", "SANDBOX_FILESYSTEM_SNAPSHOT_ERROR")

    async def destroy(self) -> None:
        """Deletes the sandbox and its checkpoints."""
        await self._ask({"action": "kill_sandbox"}, "SANDBOX_KILLED", "SANDBOX_KILL_ERROR")
        await self.wait_closed()

    async def close(self) -> None:
        """Disconnects. The sandbox and its executions keep running."""
        await self._socket.close()
        await self.wait_closed()

    async def wait_closed(self) -> Closed:
        """Waits until the session has ended. Never fails."""
        assert self._reader is not None
        return await asyncio.shield(self._reader)

    async def events(self) -> AsyncIterator[Event]:
        """Every event of the server, from the first step of the loop until the session has ended."""
        arrived: asyncio.Queue[Event | None] = asyncio.Queue()

        def listen(event: Event, error: SandboxerError | None) -> None:
            arrived.put_nowait(event)

        self._listeners.append(listen)
        assert self._reader is not None
        self._reader.add_done_callback(lambda _: arrived.put_nowait(None))
        try:
            while (event := await arrived.get()) is not None:
                yield event
        finally:
            self._listeners.remove(listen)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    @classmethod
    async def _open(
        cls, path: str, params: dict[str, str], options: ConnectionOptions, query: dict[str, Any] | None = None
    ) -> Self:
        transport = Transport(**options)
        try:
            socket = await transport.websocket(address(transport.url, path, params, query), own_key=True)
        except InvalidStatus as error:
            text = (error.response.body or b"").decode(errors="replace")
            raise error_of_body(text, error.response.status_code) from error
        except (OSError, WebSocketException, asyncio.TimeoutError) as error:
            raise unreachable(transport.url, error, sent=False) from error
        session = cls(socket)
        session._reader = asyncio.create_task(session._read())
        return session

    async def _begin(self, step: Step[bool], message: Event | None) -> Self:
        try:
            await self._until(step, message)
            return self
        except BaseException:
            await self._socket.close()
            raise

    async def _read(self) -> Closed:
        try:
            async for text in self._socket:
                self._receive(json.loads(text))
        except WebSocketException:
            pass
        closed = Closed(self._socket.close_code or 1006, self._socket.close_reason or "")
        for future in list(self._waiting):
            if not future.done():
                future.set_exception(self._last_error or _lost(closed))
        return closed

    def _receive(self, event: Event) -> None:
        if event["event"] == "status_update":
            self._error_status = event["status"] if "message" in event else None
        self._last_error = _error_of(event, self._error_status) if event["event"] == "error" else None
        for listener in list(self._listeners):
            listener(event, self._last_error)

    async def _send(self, message: Event) -> None:
        """Lost if the connection has closed. A caller that waits for the answer gets an error."""
        with suppress(WebSocketException):
            await self._socket.send(json.dumps(message))

    async def _until(self, step: Step[Result], message: Event | None) -> Result:
        """Sends a message and waits for the result of a step. The end of the connection fails it in any case."""
        found: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

        def listen(event: Event, error: SandboxerError | None) -> None:
            if found.done():
                return
            try:
                result = step(event, error)
                if result is not None:
                    found.set_result(result)
            except SandboxerError as problem:
                found.set_exception(problem)

        self._listeners.append(listen)
        self._waiting.add(found)
        try:
            if self._reader is not None and self._reader.done():
                raise self._last_error or _lost(self._reader.result())
            if message is not None:
                await self._send(message)
            return await found
        finally:
            self._listeners.remove(listen)
            self._waiting.discard(found)

    async def _follow(self, step: Step[ExecutionResult], message: Event) -> ExecutionResult:
        """One at a time, as on the server: the events of two could not be told apart."""
        if self._following:
            raise failure("execution_in_progress", "An execution is already in progress.")
        self._following = True
        try:
            return await self._until(step, message)
        finally:
            self._following = False

    async def _ask(self, message: Event, success: str, *failures: str) -> None:
        def step(event: Event, error: SandboxerError | None) -> bool | None:
            if error is not None and error.details.get("status") in failures:
                raise error
            return _has_status(event, success) or None

        await self._until(step, message)


class _Watch:
    """Collects one execution from the events of a session: from its RUNNING to its DONE."""

    def __init__(self, on_output: Callable[[SessionOutput], object] | None, replay: bool = False) -> None:
        self._on_output = on_output
        #: A DONE may come alone: there was nothing left to replay.
        self._replay = replay
        self._texts: dict[str, list[str]] = {"stdout": [], "stderr": []}
        self._execution_id: str | None = None
        self._running = False

    def step(self, event: Event, error: SandboxerError | None) -> ExecutionResult | None:
        """Before its RUNNING, a refusal is about this execution and a DONE belongs to an older one. After it only the
        DONE counts: errors are about other messages, such as a late stdin."""
        kind = event["event"]
        if kind in self._texts:
            self._texts[kind].append(event["data"])
            if self._on_output is not None:
                self._on_output(
                    SessionOutput(kind, event["data"], event.get("execution_id", ""), event.get("offset", 0))
                )
        if error is not None and not self._running and error.details.get("status") in _REFUSALS:
            raise error
        if _has_status(event, "SANDBOX_EXECUTION_RUNNING"):
            self._running, self._execution_id = True, event.get("execution_id")
        if not _has_status(event, "SANDBOX_EXECUTION_DONE") or not (self._running or self._replay):
            return None
        stdout, stderr = ("".join(self._texts[name]) for name in ("stdout", "stderr"))
        return ExecutionResult(stdout, stderr, event.get("exit_code"), self._execution_id)


def _has_status(event: Event, status: str) -> bool:
    return bool(event["event"] == "status_update" and event["status"] == status)


def _error_of(event: Event, status: str | None) -> SandboxerError:
    code = event.get("code")
    details = {} if status is None else {"status": status}
    return failure(code if code in ERRORS else "internal", event["message"], event.get("hint"), details)


def _lost(closed: Closed) -> SandboxerError:
    details = {"close_code": closed.code}
    if closed.code == 1012:
        return failure("draining", "The server is shutting down.", details=details)
    if closed.code == 1009:
        return failure("too_large", "The message is larger than the server allows.", details=details)
    reason = f": {closed.reason}" if closed.reason else "."
    return failure(
        "backend_unavailable",
        f"The connection was closed with {closed.code}{reason}",
        "Check that the server can be reached, then attach again. Executions keep running.",
        details,
    )
