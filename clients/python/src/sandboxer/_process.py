"""A process in a sandbox."""

from __future__ import annotations

import codecs
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar, cast

from ._bytes import pieces
from ._decode import decode
from ._options import Bytes, CallOptions, Stream
from ._process_link import ExitStatus, LinkOptions, ProcessLink
from ._process_queues import OutputChunk
from ._transport import Wire
from .errors import SandboxerError, failure, is_code
from .models import ProcessRecord

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

Item = TypeVar("Item")

#: The server's default limit.
MAX_OUTPUT_BYTES = 10 * 1024 * 1024
_GONE = ("process_not_found", "sandbox_not_found", "sandbox_destroyed", "wrong_state")


@dataclass(frozen=True)
class OutputLine:
    stream: Stream
    #: Without its line break.
    text: str


@dataclass(frozen=True)
class ExecResult:
    process_id: str
    stdout: str
    stderr: str
    #: There was more output than ``max_output_bytes``; the rest was read and dropped.
    truncated: bool
    #: None if a signal ended it.
    exit_code: int | None
    signal: str | None
    timed_out: bool
    #: The hint for its failure, such as a missing network; None: nothing is known.
    hint: str | None


@dataclass(frozen=True)
class Detached:
    """The arguments for ``sandbox.process`` to attach again."""

    id: str
    offset: int


class AsyncSandboxProcess:
    """A process in a sandbox. Its output is read by one of ``chunks``, ``lines``, ``collect`` and ``wait``, once; a
    lost connection is restored automatically. A process whose output is not read blocks when 1 MiB of it waits, unless
    it was detached. At the end of ``with`` it is killed and dropped."""

    id: str
    pid: int

    def __init__(self, pid: int, options: LinkOptions) -> None:
        self.id = options.process_id
        self.pid = pid
        self._calls = options.calls
        self._link = ProcessLink(options)
        self._reading = False

    @property
    def offset(self) -> int:
        """How far its output was read: ``sandbox.process(id, offset=...)`` continues exactly here."""
        return self._link.offset

    @property
    def exit(self) -> ExitStatus | None:
        """Its exit, once its output was read to the end."""
        return self._link.exit

    async def chunks(self) -> AsyncIterator[OutputChunk]:
        """Its output as it arrives, as bytes. Leaving the loop detaches: the process keeps running."""
        if self._reading:
            raise failure("wrong_state", "The output of this process is already being read.")
        self._reading = True
        try:
            while (chunk := await self._link.next()) is not None:
                yield chunk
        finally:
            if self._link.exit is None:
                self._link.detach()

    async def lines(self, stream: Stream | None = None) -> AsyncIterator[str]:
        """Its output as lines, of both streams or of one."""
        async with closing(self.output_lines()) as lines:
            async for line in lines:
                if stream is None or line.stream == stream:
                    yield line.text

    async def output_lines(self) -> AsyncIterator[OutputLine]:
        """Its output as lines with their streams; an unterminated rest is the last line."""
        texts = _Texts()
        async with closing(self.chunks()) as chunks:
            async for chunk in chunks:
                *lines, texts.rest[chunk.stream] = texts.decode(chunk).split("\n")
                for text in lines:
                    yield OutputLine(chunk.stream, text.removesuffix("\r"))
        for stream, text in texts.end().items():
            if text:
                yield OutputLine(stream, text)

    async def collect(self, *, max_output_bytes: int = MAX_OUTPUT_BYTES) -> ExecResult:
        """Reads everything to the end. A failing program is a result, not an error."""
        texts, parts = _Texts(), _Parts()
        room, truncated = max_output_bytes, False
        async for chunk in self.chunks():
            kept = chunk.data[:room]
            truncated = truncated or len(kept) < len(chunk.data)
            room -= len(kept)
            parts[chunk.stream].append(texts.decode(OutputChunk(chunk.stream, kept, chunk.offset)))
        for stream, text in texts.end().items():
            parts[stream].append(text)
        ended = self._ended()
        return ExecResult(
            process_id=self.id,
            stdout="".join(parts["stdout"]),
            stderr="".join(parts["stderr"]),
            truncated=truncated,
            exit_code=ended.exit_code,
            signal=ended.signal,
            timed_out=ended.timed_out,
            hint=ended.hint,
        )

    async def wait(self) -> ExitStatus:
        """Waits until it ends, and drops its output."""
        async for _ in self.chunks():
            pass
        return self._ended()

    async def write(self, data: Bytes) -> None:
        """Writes to its stdin; returns when the process has read it."""
        self._link.start()
        async for piece in pieces(data):
            await self._link.stdin.write(piece)

    async def close_stdin(self) -> None:
        """Closes its stdin after everything that was written."""
        self._link.start()
        self._link.stdin.close()

    async def kill(self, signal: str | int = "SIGKILL", **options: Unpack[CallOptions]) -> None:
        """Sends a signal, by default SIGKILL, to it and its children."""
        await self._calls.call("signalProcess", params=self._params, body={"signal": signal}, wire=Wire(**options))

    async def resize(self, rows: int, columns: int, **options: Unpack[CallOptions]) -> None:
        """Resizes its terminal."""
        body = {"rows": rows, "columns": columns}
        await self._calls.call("resizeProcess", params=self._params, body=body, wire=Wire(**options))

    async def detach(self) -> Detached:
        """Stops reading; the process keeps running. Returns what ``sandbox.process`` needs to attach again."""
        self._link.detach()
        return Detached(self.id, self.offset)

    async def info(self) -> ProcessRecord:
        """The server's record of it."""
        return decode(ProcessRecord, await self._calls.call("getProcess", params=self._params))

    async def release(self, **options: Unpack[CallOptions]) -> None:
        """Kills it if it runs, and deletes its output."""
        self._link.detach()
        await self._calls.call("releaseProcess", params=self._params, wire=Wire(**options))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self.release()
        except SandboxerError as problem:
            if not is_code(problem, *_GONE):
                raise

    @property
    def _params(self) -> dict[str, str]:
        return {"process_id": self.id}

    def _ended(self) -> ExitStatus:
        if self._link.exit is None:
            raise failure("wrong_state", "The process was detached before it ended.")
        return self._link.exit


def closing(items: AsyncIterator[Item]) -> AbstractAsyncContextManager[AsyncIterator[Item]]:
    """Leaving a loop over an iterator also closes the iterators below it."""
    return aclosing(cast("AsyncGenerator[Item]", items))


class _Parts(dict[Stream, list[str]]):
    def __init__(self) -> None:
        super().__init__({"stdout": [], "stderr": []})


class _Texts:
    """The streams as text, each by itself. Invalid UTF-8 is replaced."""

    def __init__(self) -> None:
        self.rest: dict[Stream, str] = {"stdout": "", "stderr": ""}
        new = codecs.getincrementaldecoder("utf-8")
        self._decoders = {"stdout": new("replace"), "stderr": new("replace")}

    def decode(self, chunk: OutputChunk) -> str:
        """The new text, after the rest of the previous chunk."""
        text = self.rest[chunk.stream] + self._decoders[chunk.stream].decode(chunk.data)
        self.rest[chunk.stream] = ""
        return text

    def end(self) -> dict[Stream, str]:
        ends: dict[Stream, str] = {}
        for stream in self.rest:
            ends[stream] = self.rest[stream] + self._decoders[stream].decode(b"", True)
        return ends
