"""The WebSocket protocol of one session."""

from __future__ import annotations

import asyncio

import pytest

from sandboxer import AsyncSandboxSession, ConflictError, NotFoundError, SandboxSession, UnreachableError


def test_a_session_runs_code_and_ends_with_a_checkpoint(url: str) -> None:
    session = SandboxSession.create({"enable_checkpoint": True}, url=url)
    pieces: list[str] = []
    result = session.run("bash", "echo hello; exit 3", on_output=lambda output: pieces.append(output.data))
    assert (result.stdout, result.exit_code, pieces) == ("hello\n", 3, ["hello\n"])
    replayed = session.reconnect(execution_id=result.execution_id, offset=0)
    assert replayed.stdout == "hello\n"
    session.snapshot_filesystem("python-session")
    session.checkpoint()
    assert session.wait_closed().code == 1000
    with SandboxSession.attach(session.id, token=session.token, url=url) as again:
        assert again.run("python", "print(6 * 7)").stdout == "42\n"
        with pytest.raises(ConflictError, match="Another client"):
            SandboxSession.attach(session.id, token=session.token, url=url)
        again.destroy()
    with pytest.raises(NotFoundError):
        SandboxSession.attach(session.id, token=session.token, url=url)


def test_stdin_and_kill_reach_the_execution(url: str) -> None:
    async def use() -> None:
        async with await AsyncSandboxSession.create(url=url) as session:
            running = asyncio.Event()
            execution = asyncio.create_task(
                session.run("bash", "echo ready; read line; echo $line; sleep 1000", on_output=lambda _: running.set())
            )
            await running.wait()
            with pytest.raises(ConflictError, match="already in progress"):
                await session.run("bash", "true")
            events = session.events()
            following = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0)
            await session.stdin("typed\n")
            assert (await following)["data"] == "typed\n"
            await session.kill()
            result = await execution
            assert (result.stdout, result.exit_code) == ("ready\ntyped\n", None)
            await session.destroy()

    asyncio.run(use())


def test_a_server_that_does_not_answer_is_unreachable() -> None:
    with pytest.raises(UnreachableError):
        SandboxSession.create(url="http://127.0.0.1:1")
