"""Cells in contexts that keep their variables."""

from __future__ import annotations

import asyncio
import os

import pytest

from sandboxer import AsyncSandbox, CellText, NotFoundError, Sandbox

pytestmark = pytest.mark.skipif("SANDBOXER_TEST_URLS" not in os.environ, reason="The fake backend runs no Python.")


def test_variables_stay_between_cells(sandbox: Sandbox) -> None:
    python = sandbox.interpreter()
    events: list[str] = []
    python.run("x = 6")
    run = python.run("print('hi')\nx * 7", on_event=lambda event: events.append(event.type), env={"A": "b"})
    assert (run.status, run.text, run.stdout, run.execution_count, run.context_id) == ("ok", "42", "hi\n", 2, "python")
    assert events == ["started", "stdout", "result", "end"]
    failed = python.run("x / 0")
    assert failed.error is not None
    assert (failed.status, failed.error.name, failed.text) == ("error", "ZeroDivisionError", None)


def test_contexts_have_variables_of_their_own(sandbox: Sandbox) -> None:
    python = sandbox.interpreter()
    python.run("x = 1")
    made = python.create_context(cwd="/tmp")
    other = sandbox.interpreter(context=made.id)
    assert [event.type for event in other.stream("x")] == ["started", "error", "end"]
    assert [(context.id, context.cwd) for context in python.contexts()] == [("python", None), (made.id, "/tmp")]
    assert python.restart().id == "python"
    assert python.run("'x' in globals()").text == "False"
    other.delete_context()
    with pytest.raises(NotFoundError):
        other.run("1")


def test_output_beyond_the_limit_is_dropped(sandbox: Sandbox) -> None:
    run = sandbox.interpreter().run("print('x' * 5000)\n'y' * 5000", max_output_bytes=100)
    assert (run.truncated, len(run.stdout), run.results, run.status) == (True, 100, [], "ok")


async def busy(sandbox: AsyncSandbox) -> None:
    while (await sandbox.refresh()).state != "running":
        await asyncio.sleep(0.01)
    while (await sandbox.interpreter().contexts())[0].state != "busy":
        await asyncio.sleep(0.01)


def test_a_cell_is_followed_when_its_sandbox_is_paused_and_an_interrupt_ends_it(url: str) -> None:
    async def use() -> None:
        async with await AsyncSandbox.create(url=url) as sandbox:
            python = sandbox.interpreter()
            printed = asyncio.Event()
            code = "import time\nprint('here')\nwhile True: time.sleep(0.01)"
            cell = asyncio.create_task(
                python.run(code, on_event=lambda event: printed.set() if isinstance(event, CellText) else None)
            )
            await printed.wait()
            await sandbox.checkpoint()
            # The stream resumes the sandbox by itself.
            await asyncio.wait_for(busy(sandbox), 60)
            await python.interrupt()
            ended = await asyncio.wait_for(cell, 60)
            assert (ended.status, ended.stdout) == ("interrupted", "here\n")

    asyncio.run(use())
