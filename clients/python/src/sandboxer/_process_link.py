"""The connection to one process."""

from __future__ import annotations

import asyncio
import json
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from websockets.exceptions import WebSocketException

from ._calls import SandboxCalls
from ._options import ConnectionState, Stream
from ._process_queues import OutputChunk, OutputQueue, StdinQueue
from ._transport import address
from .errors import SandboxerError, error_of_fields, failure

ATTACH_PATH = "/v1/sandboxes/{id}/processes/{process_id}/attach"
#: u8 stream, u64 big-endian offset of the first byte, bytes.
_HEADER = struct.Struct(">BQ")
_STREAMS: dict[int, Stream] = {1: "stdout", 2: "stderr"}
#: Acknowledged in steps, so that a talkative program costs few messages.
ACKNOWLEDGE_BYTES = 64 * 1024
#: The limit of unread output before another connection is opened.
MAX_QUEUED_BYTES = 256 * 1024
_End = Literal["exit", "moving", "lost"]


@dataclass(frozen=True)
class ExitStatus:
    #: None if a signal ended it.
    exit_code: int | None
    signal: str | None
    timed_out: bool
    #: The hint for its failure, such as a missing network; None: nothing is known.
    hint: str | None


@dataclass(frozen=True)
class LinkOptions:
    calls: SandboxCalls
    token: str | None
    process_id: str
    #: Where to begin; None: with unacknowledged output.
    offset: int | None
    pty: bool
    #: It never waits for a reader, so that a slow one misses output.
    detached: bool
    on_connection: Callable[[ConnectionState], object] | None = None
    reconnect: float = 60
    silence: float = 30


class ProcessLink:
    """Restored automatically: after a drop, a restart of the server or a handoff it attaches again with its offset,
    wherever the sandbox is then. Output that was not passed to the reader is not acknowledged, so nothing is lost."""

    def __init__(self, options: LinkOptions) -> None:
        self._options = options
        self.stdin = StdinQueue(strict=not options.pty)
        self._queue = OutputQueue(options.offset, options.detached)
        self.exit: ExitStatus | None = None
        #: Nothing more is expected: after its end, a failure, or a detach.
        self.over = False
        self._failure: BaseException | None = None
        self._task: asyncio.Task[None] | None = None
        #: Frames for the current connection; None closes it.
        self._outgoing: asyncio.Queue[bytes | str | None] | None = None
        self._arrived = asyncio.Event()
        self._drained = asyncio.Event()
        self._attached = self._progressed = False
        self._told: ConnectionState | None = None

    @property
    def offset(self) -> int:
        """The end of the output that was read."""
        return self._queue.taken

    async def next(self) -> OutputChunk | None:
        """The next piece of output; None at the end. Requesting the next one acknowledges the last."""
        self.start()
        while True:
            self._acknowledge(1 if self._queue.is_empty else ACKNOWLEDGE_BYTES)
            chunk = self._queue.shift()
            if self._queue.is_empty:
                self._drained.set()
            if chunk is not None:
                return chunk
            if self._failure is not None:
                raise self._failure
            if self.over:
                return None
            self._arrived.clear()
            await self._arrived.wait()

    def start(self) -> None:
        """Connects, if not connected."""
        if self._task is None and not self.over:
            self._task = asyncio.create_task(self._run_safely())

    def detach(self) -> None:
        """Ends the connection, not the process."""
        self._acknowledge(1)
        self._finish(failure("wrong_state", "The process was detached."))

    def _finish(self, error: SandboxerError) -> None:
        self.over = True
        self.stdin.fail(error)
        if self._outgoing is not None:
            # Behind the last acknowledgement.
            self._outgoing.put_nowait(None)
        elif self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        self._arrived.set()
        self._drained.set()

    async def _run_safely(self) -> None:
        try:
            await self._run()
        except Exception as error:
            if not self.over:
                self._failure = error
                closed = failure("internal", "The connection to the process was closed.")
                self._finish(error if isinstance(error, SandboxerError) else closed)

    async def _run(self) -> None:
        failures = 0
        last_seen = time.monotonic()
        while not self.over:
            self._attached = self._progressed = False
            end = await self._connect()
            if self.over or end == "exit":
                return
            if self._attached:
                failures, last_seen = 0, time.monotonic()
            failures += 1
            self._tell("moving" if end == "moving" else "lost")
            if self._options.calls.is_put_down:
                raise self._put_down()
            if failures > 1 or end == "lost":
                await asyncio.sleep(self._delay(failures))
            await self._locate(last_seen)
            # Each connection brings a window of output; a slow reader whose connections break often must not
            # accumulate them.
            while self._queue.waiting_bytes > MAX_QUEUED_BYTES and not self.over:
                self._drained.clear()
                await self._drained.wait()

    async def _connect(self) -> _End:
        """One connection, from its opening to its end."""
        end: _End = "lost"
        error: SandboxerError | None = None
        try:
            async with self._options.calls.transport.websocket(
                self._address(), silence=self._options.silence
            ) as socket:
                self._outgoing = asyncio.Queue()
                writer = asyncio.create_task(_write(socket, self._outgoing))
                try:
                    async for message in socket:
                        if self.over:
                            break
                        if isinstance(message, bytes):
                            self._output(message)
                            continue
                        event = json.loads(message)
                        if event["event"] == "error":
                            error = error_of_fields(event)
                        else:
                            end = self._event(event) or end
                        if end == "exit":
                            break
                finally:
                    self._outgoing = None
                    writer.cancel()
        except (OSError, WebSocketException, asyncio.TimeoutError):
            pass
        finally:
            self.stdin.disconnected(end != "lost")
        if self.over or error is None:
            return end
        if self._options.calls.is_put_down:
            raise self._put_down()
        if await self._options.calls.recover(error):
            return "moving"
        raise error

    def _output(self, frame: bytes) -> None:
        stream = _STREAMS.get(frame[0]) if len(frame) >= _HEADER.size else None
        if stream is None:
            raise failure("internal", "The server sent a frame that is not output.")
        _, start = _HEADER.unpack_from(frame)
        if self._queue.push(stream, start, frame[_HEADER.size :]):
            self._progressed = True
            self._arrived.set()

    def _event(self, event: dict[str, Any]) -> _End | None:
        kind = event["event"]
        if kind == "attached":
            self._attached = True
            self._tell("attached")
            self._queue.begin(event["offset"])
            self.stdin.connected(self._send, lambda: self._send(json.dumps({"action": "stdin_close"})))
        elif kind == "stdin":
            self.stdin.taken(event["bytes"])
        elif kind == "moving":
            self.stdin.taken(event["stdin_bytes"])
            return "moving"
        elif kind == "exit":
            # A slow reader of a detached process missed output; what is still buffered is fetched.
            if event["offset"] > (self._queue.received or 0):
                if self._progressed:
                    return "moving"
                self._queue.miss(event["offset"])
            self.exit = ExitStatus(event["exit_code"], event["signal"], event["timed_out"], event.get("hint"))
            self._finish(failure("wrong_state", "The process has ended."))
            return "exit"
        return None

    def _send(self, frame: bytes | str) -> bool:
        if self._outgoing is None:
            return False
        self._outgoing.put_nowait(frame)
        return True

    def _acknowledge(self, least: int) -> None:
        self._queue.acknowledge(least, lambda offset: self._send(json.dumps({"action": "ack", "offset": offset})))

    async def _locate(self, last_seen: float) -> None:
        """Finds out over HTTP where the process is, which resumes the sandbox if necessary, and raises if it is not
        available."""
        failures = 0
        while True:
            try:
                await self._options.calls.call("getProcess", params={"process_id": self._options.process_id})
                return
            except SandboxerError as error:
                failures += 1
                if not error.retryable or time.monotonic() - last_seen > self._options.reconnect:
                    raise
                await asyncio.sleep(self._delay(failures))

    def _tell(self, state: ConnectionState) -> None:
        """Each change once. Errors of the listener are ignored."""
        if self._options.on_connection is not None and self._told != state:
            self._told = state
            asyncio.get_running_loop().call_soon(self._options.on_connection, state)

    def _delay(self, failures: int) -> float:
        return self._options.calls.transport.retry.delay(failures)

    def _address(self) -> str:
        calls, token = self._options.calls, self._options.token
        query = {
            "offset": self._queue.received,
            "sandbox_token": token if calls.transport.api_key is None else None,
            "relay": "allow" if calls.transport.relay else None,
        }
        params = {"id": calls.sandbox_id, "process_id": self._options.process_id}
        return address(calls.url, ATTACH_PATH, params, query)

    def _put_down(self) -> SandboxerError:
        return failure(
            "wrong_state",
            "The sandbox was paused while you followed one of its processes.",
            "Resume the sandbox and attach to the process again with the offset in the details.",
            {"state": "stored", "process_id": self._options.process_id, "offset": self.offset},
        )


async def _write(socket: Any, outgoing: asyncio.Queue[bytes | str | None]) -> None:
    try:
        while (frame := await outgoing.get()) is not None:
            await socket.send(frame)
        await socket.close()
    except (OSError, WebSocketException):
        # The reader sees the end of the connection.
        pass
