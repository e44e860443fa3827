"""Tests of the adapters for agent frameworks, with real programs, on the server that SANDBOXER_TEST_URLS names."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from sandboxer import Sandbox

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="session")
def url() -> str:
    return os.environ["SANDBOXER_TEST_URLS"].split(",")[0]


@pytest.fixture(scope="class")
def sandbox_of_class(url: str) -> Iterator[Sandbox]:
    with Sandbox.create(url=url) as sandbox:
        yield sandbox


@pytest.fixture
def own_sandbox(url: str) -> Iterator[Sandbox]:
    with Sandbox.create(url=url) as sandbox:
        yield sandbox


def example(name: str) -> ModuleType:
    """The program of a folder below examples."""
    module = ModuleType(name)
    path = EXAMPLES / name / "agent.py"
    sys.modules[name] = module
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    return module
