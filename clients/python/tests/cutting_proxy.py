"""A proxy in front of a server whose connections can be cut."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from urllib.parse import urlsplit


class CuttingProxy:
    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []
        #: How many connections were cut.
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Ends every connection at once, as a lost network does."""
        ending, self._open = self._open, []
        for one in ending:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self.cuts += len(ending) // 2

    def __enter__(self) -> CuttingProxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                self._open += [near, far]
                for source, to in ((near, far), (far, near)):
                    threading.Thread(target=_copy, args=(source, to), daemon=True).start()


def _copy(source: socket.socket, to: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            to.sendall(data)
    for one in (source, to):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
