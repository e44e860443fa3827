"""Every example of the documentation runs, and prints what it says."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from sandboxer import AsyncSandbox, AsyncSandboxer, Sandbox, Sandboxer
from sandboxer import testing as testing_module
from sandboxer._transport import DEFAULT_URL, Transport

ROOT = Path(__file__).parents[3]
PAGES = [
    "clients/python/README.md",
    "docs/start/README.md",
    "docs/reference/python.md",
    "docs/guides/python.md",
]
BLOCK = re.compile(r"^(\*Not run by our tests.*\*\n\n)?```python\n([\s\S]*?)^```$", re.MULTILINE)


def blocks() -> list[Any]:
    found = []
    for page in PAGES:
        text = (ROOT / page).read_text()
        for match in BLOCK.finditer(text):
            if match[1] is None:
                found.append(pytest.param(match[2], id=f"{page}:{text[: match.start()].count(chr(10)) + 1}"))
    return found


def test_there_are_examples() -> None:
    assert len(blocks()) > 12


@pytest.mark.parametrize("code", blocks())
def test_example(
    code: str,
    urls: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(Transport.__init__, "__defaults__", (urls[0],))
    monkeypatch.setattr(testing_module, "_command", lambda: _command())
    monkeypatch.chdir(tmp_path)
    text = code.replace(DEFAULT_URL, urls[0]).replace("http://other-server:8080", urls[1])
    compiled = compile(text, "example", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if compiled.co_flags & inspect.CO_COROUTINE:
        asyncio.run(_run_async(text, compiled))
    else:
        _run(text, compiled)
    printed = capsys.readouterr().out.splitlines()
    for promise in re.findall(r"^\s*print\(.*\)  # (.*)$", code, re.MULTILINE):
        assert promise in printed


def _command() -> list[str]:
    from conftest import COMMAND

    return COMMAND


def _needs_sandbox(text: str) -> bool:
    return re.search(r"\bsandbox\b", text) is not None and re.search(r"\bsandbox =|as sandbox\b", text) is None


def _run(text: str, compiled: Any) -> None:
    names: dict[str, Any] = {}
    if _needs_sandbox(text):
        names = {"client": Sandboxer(), "Sandbox": Sandbox}
        names["sandbox"] = Sandbox.create(client=names["client"])
    exec(compiled, names)


async def _run_async(text: str, compiled: Any) -> None:
    names: dict[str, Any] = {}
    if _needs_sandbox(text):
        names = {"client": AsyncSandboxer(), "AsyncSandbox": AsyncSandbox}
        names["sandbox"] = await AsyncSandbox.create(client=names["client"])
    await eval(compiled, names)
