"""Paged lists."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from ._transport import Transport


async def every_item(
    transport: Transport,
    name: str,
    query: Mapping[str, Any],
    on_page: Callable[[dict[str, Any]], object] = lambda page: None,
) -> AsyncIterator[Any]:
    """The next page is requested when the current one is used up."""
    cursor: str | None = None
    while True:
        page = await transport.call(name, query={**query, "cursor": cursor})
        on_page(page)
        for item in page["items"]:
            yield item
        cursor = page["next_cursor"]
        if cursor is None:
            return
