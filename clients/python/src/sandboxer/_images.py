"""The container images on a server's machine."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from ._decode import decode, decode_all
from ._options import Bytes, CallOptions, LongCallOptions
from ._transport import Transport, Wire
from .models import ImageRecord, RemovedImages

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AsyncImages:
    """The container images on a server's machine. A name works wherever a digest is expected."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def list(self) -> builtins.list[ImageRecord]:
        """Most recently used first."""
        return decode_all(ImageRecord, (await self._transport.call("listImages"))["items"])

    async def get(self, image: str) -> ImageRecord:
        """One image."""
        return decode(ImageRecord, await self._transport.call("getImage", params={"image": image}))

    async def pull(self, image: str, **options: Unpack[LongCallOptions]) -> ImageRecord:
        """Asks the registry, even if an image with this name exists. Creating a sandbox pulls a missing image
        automatically."""
        wire = Wire(**options)
        return decode(ImageRecord, await self._transport.call("pullImage", body={"image": image}, wire=wire))

    async def import_archive(
        self, archive: Bytes, *, name: str | None = None, **options: Unpack[CallOptions]
    ) -> ImageRecord:
        """Imports an archive that ``docker save``, buildah or skopeo wrote; ``name`` overrides the name in it."""
        query, wire = {"name": name}, Wire(**options)
        return decode(ImageRecord, await self._transport.call("importImage", query=query, body=archive, wire=wire))

    async def delete(self, image: str) -> RemovedImages:
        """Deletes a name, and with the last name the image. Fails while a running sandbox uses it."""
        return decode(RemovedImages, await self._transport.call("deleteImage", params={"image": image}))

    async def prune(self) -> RemovedImages:
        """Deletes every image that no running sandbox uses."""
        return decode(RemovedImages, await self._transport.call("pruneImages"))
