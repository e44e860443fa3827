"""The servers of the tests. `npm test` starts two with one store, and names them in SANDBOXER_TEST_URLS. Without it,
they are started here, from this repository."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from cutting_proxy import CuttingProxy

from sandboxer import Sandbox, Sandboxer
from sandboxer.testing import start_server

ROOT = Path(__file__).parents[3]
COMMAND = [str(ROOT / "node_modules/.bin/node"), str(ROOT / "packages/cli/bin/sandboxer.mjs")]


@pytest.fixture(scope="session")
def urls() -> Iterator[list[str]]:
    given = os.environ.get("SANDBOXER_TEST_URLS")
    if given is not None:
        yield given.split(",")
        return
    with start_server(command=COMMAND) as first, start_server(command=COMMAND, store=first.store) as second:
        yield [first.url, second.url]


@pytest.fixture
def url(urls: list[str]) -> str:
    return urls[0]


@pytest.fixture
def client(url: str) -> Iterator[Sandboxer]:
    with Sandboxer(url=url) as client:
        yield client


@pytest.fixture
def sandbox(client: Sandboxer) -> Iterator[Sandbox]:
    with Sandbox.create(client=client) as sandbox:
        yield sandbox


@pytest.fixture
def proxy(url: str) -> Iterator[CuttingProxy]:
    with CuttingProxy(url) as proxy:
        yield proxy
