"""Events as they happen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx

from ._decode import decode
from ._retry import Retry
from ._transport import Transport
from .errors import SandboxerError
from .models import EventRecord


async def follow_events(
    transport: Transport,
    *,
    sandbox_id: str | None = None,
    type: str | None = None,
    cursor: str | None = None,
    on_connection: Callable[[bool, str | None], object] | None = None,
) -> AsyncIterator[EventRecord]:
    """A lost connection is restored from the last cursor: no event is missed or repeated."""
    waits = Retry()
    failures = 0
    while True:
        query = {"follow": True, "sandbox_id": sandbox_id, "type": type, "cursor": cursor}
        failures += 1
        try:
            async with transport.open("events", query=query, accept="text/event-stream") as response:
                failures = 0
                if on_connection is not None:
                    on_connection(True, cursor)
                async for fields in server_sent_events(response):
                    cursor = fields.get("id", cursor)
                    if "data" not in fields:
                        continue
                    event = decode(EventRecord, json.loads(fields["data"]))
                    cursor = event.cursor
                    yield event
        except SandboxerError as error:
            if error.code != "server_unreachable" or failures >= waits.attempts:
                raise
        finally:
            if on_connection is not None:
                on_connection(False, cursor)
        await asyncio.sleep(waits.delay(max(1, failures)))


async def server_sent_events(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    """Reads an event stream (WHATWG HTML, section 9.2) to its end."""
    fields: dict[str, Any] = {}
    async for line in response.aiter_lines():
        if line == "":
            if "id" in fields or "data" in fields:
                yield fields
            fields = {}
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name in ("id", "event"):
            fields[name] = value
        elif name == "data":
            fields["data"] = f"{fields['data']}\n{value}" if "data" in fields else value
