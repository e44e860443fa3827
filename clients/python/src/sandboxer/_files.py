"""The files of a sandbox."""

from __future__ import annotations

import asyncio
import builtins
import tempfile
from collections.abc import AsyncIterator, Callable
from typing import IO, TYPE_CHECKING, cast

from ._bytes import PIECE_BYTES
from ._calls import SandboxCalls
from ._decode import decode, decode_all
from ._folders import UnpackResult, pack_folder, unpack_folder
from ._options import Bytes, CallOptions, Path
from ._transport import Wire
from .errors import SandboxerError, is_code
from .models import FileEntry, UploadResult

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: A packed folder is kept in memory up to this size, then in a temporary file.
SPOOL_BYTES = 8 * 1024 * 1024


class AsyncSandboxFiles:
    """The files of a sandbox. Paths are absolute."""

    def __init__(self, calls: SandboxCalls) -> None:
        self._calls = calls

    async def read(self, path: str, *, offset: int | None = None, length: int | None = None) -> bytes:
        """Reads a file, or a part of it."""
        return await self._calls.read("readFile", query={"path": path, "offset": offset, "length": length})

    async def read_text(self, path: str, *, offset: int | None = None, length: int | None = None) -> str:
        """As UTF-8."""
        return (await self.read(path, offset=offset, length=length)).decode(errors="replace")

    async def read_stream(
        self, path: str, *, offset: int | None = None, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """Piece by piece, for files that do not fit into memory."""
        query = {"path": path, "offset": offset, "length": length}
        async with self._calls.open("readFile", query=query) as response:
            async for piece in response.aiter_bytes(PIECE_BYTES):
                yield piece

    async def write(
        self,
        path: str,
        data: Bytes,
        *,
        mode: int | None = None,
        parents: bool = True,
        **options: Unpack[CallOptions],
    ) -> None:
        """Writes a file, creating or replacing it. ``parents`` creates missing folders; ``mode`` is such as 0o644."""
        query = {"path": path, "parents": parents, "mode": None if mode is None else f"{mode:04o}"}
        await self._calls.call("writeFile", query=query, body=data, wire=Wire(**options))

    async def list(self, path: str) -> builtins.list[FileEntry]:
        """Lists a folder, sorted by name."""
        return decode_all(FileEntry, (await self._calls.call("listFiles", query={"path": path}))["items"])

    async def stat(self, path: str) -> FileEntry:
        """The metadata of a file, a folder or a link."""
        return decode(FileEntry, await self._calls.call("statFile", query={"path": path}))

    async def exists(self, path: str) -> bool:
        """Whether a file, a folder or a link exists."""
        try:
            await self.stat(path)
            return True
        except SandboxerError as error:
            if is_code(error, "file_not_found"):
                return False
            raise

    async def remove(self, path: str, *, recursive: bool = False, **options: Unpack[CallOptions]) -> None:
        """Deletes a file; a folder only with ``recursive``."""
        query = {"path": path, "recursive": recursive}
        await self._calls.call("removeFile", query=query, wire=Wire(**options))

    async def mkdir(self, path: str, *, parents: bool = True, **options: Unpack[CallOptions]) -> None:
        """Creates a folder and its parents."""
        await self._calls.call("makeFolder", body={"path": path, "parents": parents}, wire=Wire(**options))

    async def rename(self, source: str, to: str, **options: Unpack[CallOptions]) -> None:
        """Renames or moves a file or a folder."""
        await self._calls.call("renameFile", body={"from": source, "to": to}, wire=Wire(**options))

    async def download_tar(self, path: str, *, skip_unreadable: bool = False) -> AsyncIterator[bytes]:
        """A file or folder with its contents, as a tar archive, piece by piece."""
        query = {"path": path, "skip_unreadable": skip_unreadable or None}
        async with self._calls.open("downloadTree", query=query) as response:
            async for piece in response.aiter_bytes(PIECE_BYTES):
                yield piece

    async def upload_tar(self, path: str, tar: Bytes, **options: Unpack[CallOptions]) -> UploadResult:
        """Unpacks a tar archive into a folder."""
        answer = await self._calls.call("uploadTree", query={"path": path}, body=tar, wire=Wire(**options))
        return decode(UploadResult, answer)

    async def upload_folder(
        self,
        local_folder: Path,
        path: str,
        *,
        filter: Callable[[str], bool] | None = None,
        **options: Unpack[CallOptions],
    ) -> UploadResult:
        """Uploads the contents of a local folder to a folder in the sandbox, which is created if missing. ``filter``
        gets paths relative to the folder, and says which to include."""
        with cast("IO[bytes]", tempfile.SpooledTemporaryFile(SPOOL_BYTES)) as archive:
            await asyncio.to_thread(pack_folder, local_folder, archive, filter)
            archive.seek(0)
            return await self.upload_tar(path, archive, **options)

    async def download_folder(self, path: str, local_folder: Path, *, skip_unreadable: bool = False) -> UnpackResult:
        """Downloads the contents of a folder in the sandbox to a local folder, which is created if missing. Nothing is
        written outside it."""
        with cast("IO[bytes]", tempfile.SpooledTemporaryFile(SPOOL_BYTES)) as archive:
            async for piece in self.download_tar(path, skip_unreadable=skip_unreadable):
                archive.write(piece)
            archive.seek(0)
            return await asyncio.to_thread(unpack_folder, archive, local_folder)
