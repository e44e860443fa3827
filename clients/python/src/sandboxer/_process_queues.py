"""Output that waits for its reader, and stdin that waits for its process."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from ._options import Stream
from .errors import SandboxerError, failure

#: Half of the server's limit of unread stdin.
WINDOW_BYTES = 512 * 1024
PIECE_BYTES = 64 * 1024


@dataclass(frozen=True)
class OutputChunk:
    stream: Stream
    data: bytes
    #: The number of bytes of the whole output including this chunk: the offset to continue from.
    offset: int


class OutputQueue:
    """In order and without repetition, across connections. Missing output is an error, unless the process is
    detached, which waits for nobody."""

    def __init__(self, start: int | None, detached: bool) -> None:
        """``start`` is what the reader already has; None: where the server says that it begins."""
        self._start = start
        self._detached = detached
        self._chunks: deque[OutputChunk] = deque()
        #: The end of the received output.
        self.received = start
        #: The end of the output that was read.
        self.taken = start or 0
        self._acknowledged = self.taken

    @property
    def is_empty(self) -> bool:
        return not self._chunks

    @property
    def waiting_bytes(self) -> int:
        return 0 if self.is_empty else (self.received or 0) - self.taken

    def begin(self, offset: int) -> None:
        """A connection begins here. Output acknowledged by older readers may be dropped; output that this one waits
        for may not."""
        if self.received is not None and offset <= self.received:
            return
        first = self.received == self._start
        if not first:
            self.miss(offset)
        self.received = offset
        if first:
            self.taken = self._acknowledged = offset

    def push(self, stream: Stream, start: int, data: bytes) -> bool:
        """True if it contained something new."""
        received = start if self.received is None else self.received
        if start > received:
            self.miss(start)
        # Repeated output counts once.
        repeated = max(0, received - start)
        if repeated >= len(data):
            return False
        self.received = start + len(data)
        self._chunks.append(OutputChunk(stream, data[repeated:], self.received))
        return True

    def shift(self) -> OutputChunk | None:
        if not self._chunks:
            return None
        chunk = self._chunks.popleft()
        self.taken = chunk.offset
        return chunk

    def miss(self, offset: int) -> None:
        """Raises, because the output up to ``offset`` is missing."""
        if self._detached:
            return
        raise failure(
            "internal",
            f"The output from byte {self.received or 0} to {offset} is no longer available.",
            "Another reader acknowledged it, or the sandbox returned to an older checkpoint.",
            {"from": self.received, "to": offset},
        )

    def acknowledge(self, least: int, send: Callable[[int], bool]) -> None:
        """Acknowledges the read output, if it is at least this many bytes more than before."""
        if self.taken - self._acknowledged >= least and send(self.taken):
            self._acknowledged = self.taken


@dataclass(eq=False)
class _Write:
    data: bytes
    done: asyncio.Future[None]
    #: How many of the bytes were sent on the current connection.
    sent: int = 0
    #: How many of them the process has read.
    taken: int = 0


@dataclass(eq=False)
class StdinQueue:
    """Pending writes to a process, in order. The server reports how much the process has read, so that after a move
    exactly the rest is sent. If a connection breaks instead, the fate of bytes in flight is unknown: those writes
    fail, and with ``strict`` all later ones too, because the program would read a text with a hole."""

    strict: bool
    _writes: list[_Write] = field(default_factory=list)
    #: For the current connection.
    _taken_here: int = 0
    _failed: SandboxerError | None = None
    _send: Callable[[bytes], bool] | None = None
    _send_close: Callable[[], object] | None = None
    _closed: bool = False

    async def write(self, data: bytes) -> None:
        """Returns when the process has read all of it."""
        if self._failed is not None:
            raise self._failed
        if self._closed:
            raise failure("wrong_state", "stdin was closed.")
        if not data:
            return
        write = _Write(data, asyncio.get_running_loop().create_future())
        self._writes.append(write)
        self._pump()
        await write.done

    def close(self) -> None:
        """Closes stdin after everything that was written."""
        self._closed = True
        self._pump()

    def connected(self, send: Callable[[bytes], bool], send_close: Callable[[], object]) -> None:
        self._taken_here = 0
        self._send, self._send_close = send, send_close
        self._pump()

    def taken(self, total_here: int) -> None:
        """The server reports how many bytes of this connection the process has read."""
        fresh = total_here - self._taken_here
        self._taken_here = total_here
        for write in self._writes:
            part = min(fresh, write.sent - write.taken)
            write.taken += part
            fresh -= part
            if write.taken == len(write.data) and not write.done.done():
                write.done.set_result(None)
        self._writes = [write for write in self._writes if write.taken < len(write.data)]
        self._pump()

    def disconnected(self, known: bool) -> None:
        """After a move the server has reported what was read; otherwise bytes in flight are in doubt."""
        self._send = self._send_close = None
        doubtful = [] if known else [write for write in self._writes if write.sent > write.taken]
        for write in self._writes:
            write.sent = write.taken
        if not doubtful:
            return
        error = failure(
            "server_unreachable",
            "The connection was lost while stdin was being sent.",
            "It is unknown how much the process has read. Its output continues.",
        )
        if self.strict:
            return self.fail(error)
        for write in doubtful:
            _reject(write, error)
        self._writes = [write for write in self._writes if write not in doubtful]

    def fail(self, error: SandboxerError) -> None:
        """Nothing will be written any more."""
        self._failed = self._failed or error
        for write in self._writes:
            _reject(write, error)
        self._writes = []

    def _pump(self) -> None:
        if self._send is None:
            return
        on_the_way = sum(write.sent - write.taken for write in self._writes)
        for write in self._writes:
            while write.sent < len(write.data) and on_the_way < WINDOW_BYTES:
                piece = write.data[write.sent : write.sent + PIECE_BYTES]
                if not self._send(piece):
                    return
                write.sent += len(piece)
                on_the_way += len(piece)
        if self._closed and not self._writes and self._send_close is not None:
            self._send_close()


def _reject(write: _Write, error: SandboxerError) -> None:
    if not write.done.done():
        write.done.set_exception(error)
        # The caller that waited for it may have been cancelled.
        write.done.exception()
