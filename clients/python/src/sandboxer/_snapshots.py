"""The snapshots of a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from ._decode import decode
from ._options import CallOptions, LongCallOptions
from ._pages import every_item
from ._transport import Transport, Wire
from .models import Carried, IntegrityReport, SnapshotChange, SnapshotDiff, SnapshotFilter, SnapshotRecord

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AsyncSnapshots:
    """The snapshots of a server. A name works wherever an id is expected."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def list(self, **filter: Unpack[SnapshotFilter]) -> AsyncIterator[SnapshotRecord]:
        """Newest first."""
        async for item in every_item(self._transport, "listSnapshots", filter):
            yield decode(SnapshotRecord, item)

    async def get(self, id: str, *, verify: bool | None = None) -> SnapshotRecord:
        """With ``verify``, checks its data; ``state`` and ``problem`` then have the result."""
        return decode(SnapshotRecord, await self._call("getSnapshot", id, query={"verify": verify}))

    async def update(self, id: str, **change: Unpack[SnapshotChange]) -> SnapshotRecord:
        """Changes its name, its labels, or whether it is pinned."""
        return decode(SnapshotRecord, await self._call("updateSnapshot", id, body=change))

    async def delete(self, id: str, **options: Unpack[CallOptions]) -> None:
        """Fails while a live sandbox depends on it."""
        await self._call("deleteSnapshot", id, wire=Wire(**options))

    async def prove(self, id: str, **options: Unpack[LongCallOptions]) -> SnapshotRecord:
        """Test-restores it in isolation; ``proven`` and ``unproven`` have the result."""
        return decode(SnapshotRecord, await self._call("proveSnapshot", id, wire=Wire(**options)))

    async def verify(self, id: str, **options: Unpack[LongCallOptions]) -> IntegrityReport:
        """Checks every block of it; the report lists damage and every image that it affects."""
        return decode(IntegrityReport, await self._call("verifySnapshot", id, wire=Wire(**options)))

    async def explain(self, id: str, *, backend: str | None = None) -> Carried:
        """Previews what a restore would and would not keep, without doing it."""
        return decode(Carried, await self._call("explainSnapshot", id, query={"backend": backend}))

    async def diff(self, id: str, to: str, *, limit: int | None = None) -> SnapshotDiff:
        """The changes from a snapshot to another one, or to a sandbox as it is now: ``sandbox:ID``."""
        return decode(SnapshotDiff, await self._call("diffSnapshots", id, query={"to": to, "limit": limit}))

    async def _call(self, name: str, id: str, **more: Any) -> Any:
        return await self._transport.call(name, params={"id": id}, **more)
