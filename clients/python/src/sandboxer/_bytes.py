"""Bytes to send, and how they are read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

from ._options import Bytes

PIECE_BYTES = 64 * 1024


def whole(data: Bytes) -> bytes | None:
    """The bytes, if they are in memory: then they can be sent again."""
    if isinstance(data, str):
        return data.encode()
    return bytes(data) if isinstance(data, (bytes, bytearray, memoryview)) else None


async def pieces(data: Bytes) -> AsyncIterator[bytes]:
    """Files and iterables are read in a thread, so that a slow one stops nothing else."""
    known = whole(data)
    if known is not None:
        yield known
    elif isinstance(data, AsyncIterable):
        async for piece in data:
            yield piece
    elif hasattr(data, "read"):
        while piece := await asyncio.to_thread(data.read, PIECE_BYTES):
            yield piece
    else:
        iterator = iter(data)
        end = object()
        while (item := await asyncio.to_thread(_next, iterator, end)) is not end:
            yield item


def _next(iterator: Any, end: object) -> Any:
    return next(iterator, end)
