"""A real server in a separate process, for tests of programs that use sandboxes.

It uses the fake backend: nothing is isolated and no real program runs, but files, processes, checkpoints, snapshots and
handoffs behave as they do on gVisor. It needs no root, and the command ``sandboxer`` (npm's ``@sandboxer/cli``)::

    from sandboxer import Sandbox
    from sandboxer.testing import start_server

    with start_server() as server, Sandbox.create(url=server.url) as sandbox:
        assert sandbox.exec("echo tested").stdout == "tested\\n"
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .errors import failure

_LISTENING = re.compile(r"Listening on\s+(http://\S+)")


@dataclass(frozen=True)
class TestServer:
    __test__ = False  # Not a test of pytest's.

    url: str
    #: For the ``store`` of another test server.
    store: Path
    process: subprocess.Popen[str]


@contextmanager
def start_server(
    *,
    store: str | os.PathLike[str] | None = None,
    api_keys: Sequence[str] = (),
    command: Sequence[str] | None = None,
    flags: Sequence[str] = ("--backend", "fake"),
) -> Iterator[TestServer]:
    """Starts a server on a free port, with its own folders; several servers with one ``store`` can hand off
    sandboxes. ``command`` is how ``sandboxer`` is started, by default from PATH or with npx."""
    folder = Path(tempfile.mkdtemp(prefix="sandboxer-testing-"))
    shared = Path(store) if store is not None else folder / "store"
    arguments = ["--host", "127.0.0.1", "--port", "0", "--store", str(shared), "--data-directory", str(folder / "data")]
    environment = {**os.environ, "SANDBOXER_API_KEYS": ",".join(api_keys)}
    process = subprocess.Popen(
        [*(command or _command()), "serve", *arguments, *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    try:
        assert process.stdout is not None
        yield TestServer(_url(process.stdout), shared, process)
    finally:
        process.terminate()
        process.communicate()
        shutil.rmtree(folder, ignore_errors=True)


def _command() -> list[str]:
    return ["sandboxer"] if shutil.which("sandboxer") else ["npx", "--yes", "@sandboxer/cli"]


def _url(output: IO[str]) -> str:
    said = []
    for line in output:
        if found := _LISTENING.search(line):
            return found[1]
        said.append(line)
    raise failure("backend_unavailable", f"The server did not start: {''.join(said).strip()[-2000:]}")
