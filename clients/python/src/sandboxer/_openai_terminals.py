"""Programs that an agent of the OpenAI Agents SDK talks to over several calls."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field

from agents.sandbox.errors import PtySessionNotFoundError
from agents.sandbox.session.pty_output import collect_pty_output
from agents.sandbox.session.pty_types import (
    PTY_PROCESSES_MAX,
    PtyExecUpdate,
    allocate_pty_process_id,
    clamp_pty_yield_time_ms,
    process_id_to_prune_from_meta,
    resolve_pty_write_yield_time_ms,
)

from ._exit_code import exit_code_of
from ._process import AsyncSandboxProcess
from .errors import SandboxerError

#: Milliseconds that a start and an input wait for output, as in the framework's own sessions.
_START_MS = 10_000
_WRITE_MS = 250


@dataclass(eq=False)
class _Terminal:
    process: AsyncSandboxProcess
    reader: asyncio.Task[None] = field(init=False)
    output: deque[bytes] = field(default_factory=deque)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    last_used: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            async for chunk in self.process.chunks():
                self.output.append(chunk.data)
                self.arrived.set()
        finally:
            self.arrived.set()

    async def end(self) -> None:
        self.reader.cancel()
        with suppress(asyncio.CancelledError, SandboxerError):
            await self.reader
        with suppress(SandboxerError):
            await self.process.release()


class Terminals:
    def __init__(self) -> None:
        self._terminals: dict[int, _Terminal] = {}

    async def begin(
        self, process: AsyncSandboxProcess, yield_time_s: float | None, max_output_tokens: int | None
    ) -> PtyExecUpdate:
        if len(self._terminals) >= PTY_PROCESSES_MAX:
            await self._end_oldest()
        number = allocate_pty_process_id(set(self._terminals))
        self._terminals[number] = _Terminal(process)
        wait_ms = _START_MS if yield_time_s is None else int(yield_time_s * 1000)
        return await self._update(number, clamp_pty_yield_time_ms(wait_ms), max_output_tokens)

    async def write(
        self, number: int, chars: str, yield_time_s: float | None, max_output_tokens: int | None
    ) -> PtyExecUpdate:
        terminal = self._terminals.get(number)
        if terminal is None:
            raise PtySessionNotFoundError(session_id=number)
        if chars:
            await terminal.process.write(chars)
        wait_ms = _WRITE_MS if yield_time_s is None else int(yield_time_s * 1000)
        wait_ms = resolve_pty_write_yield_time_ms(yield_time_ms=wait_ms, input_empty=chars == "")
        return await self._update(number, wait_ms, max_output_tokens)

    async def end_all(self) -> None:
        ended = list(self._terminals.values())
        self._terminals.clear()
        for terminal in ended:
            await terminal.end()

    async def _update(self, number: int, wait_ms: int, max_output_tokens: int | None) -> PtyExecUpdate:
        terminal = self._terminals[number]
        terminal.last_used = time.monotonic()
        output, tokens, closed = await collect_pty_output(
            output_chunks=terminal.output,
            output_lock=terminal.lock,
            output_notify=terminal.arrived,
            is_done=terminal.reader.done,
            yield_time_ms=wait_ms,
            max_output_tokens=max_output_tokens,
        )
        if not closed:
            return PtyExecUpdate(process_id=number, output=output, exit_code=None, original_token_count=tokens)
        # A lost connection fails here.
        self._terminals.pop(number, None)
        await terminal.reader
        code = exit_code_of(terminal.process.exit)
        return PtyExecUpdate(process_id=None, output=output, exit_code=code, original_token_count=tokens)

    async def _end_oldest(self) -> None:
        known = [(number, each.last_used, each.reader.done()) for number, each in self._terminals.items()]
        number = process_id_to_prune_from_meta(known)
        if number is not None:
            await self._terminals.pop(number).end()
