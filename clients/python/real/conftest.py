"""Tests with real programs, on the servers that SANDBOXER_TEST_URLS names. They share one sandbox."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from sandboxer import Sandbox


@pytest.fixture(scope="session")
def urls() -> list[str]:
    return os.environ["SANDBOXER_TEST_URLS"].split(",")


@pytest.fixture(scope="session")
def sandbox(urls: list[str]) -> Iterator[Sandbox]:
    with Sandbox.create(url=urls[0]) as sandbox:
        yield sandbox
