"""The classes without async: generated, interruptible, and safe from deadlocks."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import sandboxer
from sandboxer import Sandbox, Sandboxer
from sandboxer._portal import iterate, run

PACKAGE = Path(__file__).parents[1]


def test_the_file_matches_the_output_of_the_script() -> None:
    script = [sys.executable, str(PACKAGE / "scripts" / "generate_sync.py"), "--check"]
    assert subprocess.run(script).returncode == 0, "run: python scripts/generate_sync.py"


def test_every_asynchronous_class_has_a_synchronous_one() -> None:
    names = [name for name in sandboxer.__all__ if name.startswith("Async")]
    assert len(names) == 9
    for name in names:
        members = {one for one in vars(getattr(sandboxer, name)) if not one.startswith("_")} - {"connect_port"}
        assert members <= set(dir(getattr(sandboxer, name.removeprefix("Async")))), name


def test_a_callback_that_calls_the_sdk_fails_without_a_deadlock(client: Sandboxer, sandbox: Sandbox) -> None:
    with pytest.raises(RuntimeError, match="Callbacks of the SDK"):
        sandbox.checkpoint(on_progress=lambda operation: client.info())


def test_leaving_a_loop_closes_its_iterator() -> None:
    closed = threading.Event()

    async def numbers():  # type: ignore[no-untyped-def]
        try:
            for number in range(3):
                yield number
        finally:
            closed.set()

    for number in iterate(numbers()):
        assert number == 0
        break
    assert closed.wait(10)


def test_ctrl_c_cancels_the_call_and_waits_for_its_end() -> None:
    cleaned = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    with pytest.raises(KeyboardInterrupt):
        run(work())
    assert cleaned == [True]


def test_threads_share_the_loop(sandbox: Sandbox) -> None:
    results: list[str] = []

    def use(number: int) -> None:
        results.append(sandbox.exec(f"echo {number}").stdout)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["0\n", "1\n", "2\n", "3\n"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="There is no fork here.")
def test_a_forked_process_can_use_the_sdk(sandbox: Sandbox) -> None:
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if sandbox.exec("echo forked").stdout == "forked\n" else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sandbox.exec("echo parent").stdout == "parent\n"
