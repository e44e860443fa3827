"""A server, and requests about it as a whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._decode import decode, decode_all
from ._events import follow_events
from ._images import AsyncImages
from ._options import ConnectionOptions, LongCallOptions
from ._pages import every_item
from ._snapshots import AsyncSnapshots
from ._transport import Transport, Wire
from .models import (
    BackendRecord,
    EventRecord,
    Expiry,
    InstanceRecord,
    IntegrityReport,
    OperationFilter,
    OperationRecord,
    ScrubStatus,
    ServerRecord,
    UsageRecord,
)

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class AsyncSandboxer:
    """A server, and requests about it as a whole. The sandbox class creates sandboxes."""

    snapshots: AsyncSnapshots
    images: AsyncImages

    def __init__(self, **options: Unpack[ConnectionOptions]) -> None:
        self._transport = Transport(**options)
        self.snapshots = AsyncSnapshots(self._transport)
        self.images = AsyncImages(self._transport)

    @property
    def url(self) -> str:
        """The server's URL."""
        return self._transport.url

    async def call(
        self,
        name: str,
        *,
        params: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        **options: Unpack[LongCallOptions],
    ) -> Any:
        """Calls any route of the HTTP API by the name of its operation, in its wire form."""
        return await self._transport.call(name, params=params, query=query, body=body, wire=Wire(**options))

    async def info(self) -> ServerRecord:
        """The server: its version, its store, how many sandboxes it runs."""
        return decode(ServerRecord, await self._transport.call("serverInfo"))

    def events(
        self,
        *,
        sandbox_id: str | None = None,
        type: str | None = None,
        cursor: str | None = None,
        on_connection: Callable[[bool, str | None], object] | None = None,
    ) -> AsyncIterator[EventRecord]:
        """Events as they happen. ``cursor`` of the last received event continues after it; default: only new events.
        ``on_connection`` is called when the connection is established and when it is lost."""
        return follow_events(
            self._transport, sandbox_id=sandbox_id, type=type, cursor=cursor, on_connection=on_connection
        )

    async def operations(self, **filter: Unpack[OperationFilter]) -> AsyncIterator[OperationRecord]:
        """Running and finished operations, newest first."""
        async for item in every_item(self._transport, "listOperations", filter):
            yield decode(OperationRecord, item)

    async def operation(self, id: str, *, wait: float | None = None) -> OperationRecord:
        """With ``wait``, waits up to that many seconds, at most 60, for it to end."""
        answer = await self._transport.call("getOperation", params={"id": id}, query={"wait": wait})
        return decode(OperationRecord, answer)

    async def expire(self, *, apply: bool = False) -> Expiry:
        """Lists expired sandboxes; with ``apply`` deletes them."""
        return decode(Expiry, await self._transport.call("expireSandboxes", query={"apply": apply}))

    async def scrub(self, *, rate_mb: float | None = None, **options: Unpack[LongCallOptions]) -> IntegrityReport:
        """Checks all data in the server's store; needs the scope ``admin``. ``rate_mb`` 0: no limit."""
        body = {} if rate_mb is None else {"rate_mb": rate_mb}
        return decode(IntegrityReport, await self._transport.call("scrubStore", body=body, wire=Wire(**options)))

    async def scrub_status(self) -> ScrubStatus:
        """Whether a scrub runs, and what the last one found."""
        return decode(ScrubStatus, await self._transport.call("scrubStatus"))

    async def stop_scrub(self) -> None:
        """The next scrub continues where it stopped."""
        await self._transport.call("stopScrub")

    async def profiles(self) -> list[dict[str, Any]]:
        """The profiles, with the field names of their files."""
        return list((await self._transport.call("listProfiles"))["items"])

    async def profile(self, name: str) -> dict[str, Any]:
        """One profile, as in its file."""
        return dict(await self._transport.call("getProfile", params={"name": name}))

    async def backends(self) -> list[BackendRecord]:
        """The backends of this server, with what each can do."""
        return decode_all(BackendRecord, (await self._transport.call("listBackends"))["items"])

    async def instances(self) -> list[InstanceRecord]:
        """All servers that share the store."""
        return decode_all(InstanceRecord, (await self._transport.call("listInstances"))["items"])

    async def usage(self, *, points: int | None = None, since: float | None = None) -> list[UsageRecord]:
        """The newest resource usage points of every sandbox of this server. ``since``: seconds since 1970."""
        page = await self._transport.call("listUsage", query={"points": points, "since": since})
        return decode_all(UsageRecord, page["items"])

    async def close(self) -> None:
        """Closes its connections. Sandboxes keep running."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
