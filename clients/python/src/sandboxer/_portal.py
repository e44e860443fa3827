"""Runs the asynchronous SDK for programs that do not use asyncio: on one event loop, in a separate thread."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar, cast

Result = TypeVar("Result")

#: Seconds in which an interrupted call may clean up, such as kill its process.
CLEAN_UP_SECONDS = 6

_lock = threading.Lock()
_started: tuple[int, asyncio.AbstractEventLoop] | None = None
_END = object()


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Runs a coroutine to its end. Ctrl-C cancels it."""
    loop = _loop()
    if _running() is loop:
        work.close()
        raise RuntimeError(
            "Callbacks of the SDK must not call it. Hand the value to another thread, or use AsyncSandbox."
        )
    begun: list[asyncio.Task[Any]] = []
    interrupted, ended = threading.Event(), threading.Event()

    async def guarded() -> Result:
        begun.append(cast("asyncio.Task[Any]", asyncio.current_task()))
        try:
            if interrupted.is_set():
                work.close()
                raise asyncio.CancelledError
            return await work
        finally:
            ended.set()

    def cancel() -> None:
        for task in begun:
            task.cancel()

    try:
        return asyncio.run_coroutine_threadsafe(guarded(), loop).result()
    except BaseException:
        # An interrupt may come at any point above, also before there is a result to wait for.
        if not ended.is_set():
            interrupted.set()
            loop.call_soon_threadsafe(cancel)
            ended.wait(CLEAN_UP_SECONDS)
        raise


def iterate(items: AsyncIterator[Result]) -> Iterator[Result]:
    """Leaving the loop closes the asynchronous iterator."""

    async def following() -> Any:
        return await anext(items, _END)

    try:
        while (item := run(following())) is not _END:
            yield item
    finally:
        run(_close(items))


async def _close(items: Any) -> None:
    if hasattr(items, "aclose"):
        await items.aclose()


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _loop() -> asyncio.AbstractEventLoop:
    """A forked process does not have its parent's thread, so it starts its own."""
    global _started
    with _lock:
        if _started is None or _started[0] != os.getpid():
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="sandboxer", daemon=True).start()
            _started = (os.getpid(), loop)
        return _started[1]
