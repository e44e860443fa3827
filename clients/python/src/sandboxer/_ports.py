"""Ports of programs inside a sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ._transport import Transport, address
from .errors import SandboxerError, error_of_body, failure, unreachable

if TYPE_CHECKING:
    from typing_extensions import Self

CONNECT_PATH = "/v1/sandboxes/{id}/connect/{port}"
#: The body of an error has a few hundred bytes.
MAX_ERROR_BYTES = 64 * 1024
PIECE_BYTES = 64 * 1024

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connect_port(transport: Transport, sandbox_id: str, token: str | None, port: int) -> Connection:
    """Opens a TCP connection to a port inside a sandbox, which is resumed if it is paused."""
    url = urlsplit(address(transport.url, CONNECT_PATH, {"id": sandbox_id, "port": str(port)}))
    secure = url.scheme == "https"
    headers = {"host": url.netloc, "connection": "Upgrade", "upgrade": "sandboxer-port", **transport.key_headers()}
    if transport.api_key is None and token is not None:
        headers["sandboxer-token"] = token
    lines = [f"GET {url.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    try:
        reader, writer = await asyncio.open_connection(
            url.hostname, url.port or (443 if secure else 80), ssl=transport.ssl_context() if secure else None
        )
    except OSError as error:
        raise unreachable(transport.url, error, sent=False) from error
    try:
        writer.write("\r\n".join(lines).encode())
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode(errors="replace")
        status = int(head.split(" ", 2)[1])
        if status == 101:
            return reader, writer
        length = next((line for line in head.lower().split("\r\n") if line.startswith("content-length:")), ":0")
        text = await reader.readexactly(min(int(length.split(":")[1]), MAX_ERROR_BYTES))
        raise error_of_body(text.decode(errors="replace"), status)
    except (OSError, EOFError, ValueError, IndexError, asyncio.LimitOverrunError) as error:
        writer.close()
        raise unreachable(transport.url, error, sent=True) from error
    except BaseException:
        writer.close()
        raise


class AsyncForwardedPort:
    """A local port that leads to a port inside a sandbox, until it is closed."""

    address: str
    port: int

    def __init__(
        self, connect: Callable[[], asyncio.Future[Connection]], on_error: Callable[[SandboxerError], object] | None
    ) -> None:
        self.address = ""
        self.port = 0
        self._connect = connect
        self._on_error = on_error
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Closes the local port and all connections."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def _listen(self, address: str, port: int) -> Self:
        try:
            self._server = await asyncio.start_server(self._accept, address, port)
        except OSError as error:
            hint = "Choose another local port, or 0 for a free one."
            raise failure("bad_request", f"Port {port} on {address} cannot be used: {error.strerror}.", hint) from error
        self.address, self.port = address, self._server.sockets[0].getsockname()[1]
        return self

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            inside_reader, inside_writer = await self._connect()
            # The end of the local side is not the end: the answer may follow.
            upwards = asyncio.create_task(_copy(reader, inside_writer))
            try:
                await _copy(inside_reader, writer)
            finally:
                upwards.cancel()
                inside_writer.close()
        except SandboxerError as error:
            if self._on_error is not None:
                self._on_error(error)
        except asyncio.CancelledError:
            pass
        finally:
            self._tasks.discard(task)
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(PIECE_BYTES):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
