"""Commands, their streams, and connections that break."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest
from cutting_proxy import CuttingProxy

from sandboxer import AsyncSandbox, Code, ConflictError, NotFoundError, Sandbox


def test_a_command_is_a_line_an_argv_or_code(sandbox: Sandbox) -> None:
    result = sandbox.exec("echo out; echo err >&2; exit 3")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
    assert sandbox.exec(["cat", "missing"]).exit_code != 0
    assert sandbox.exec(Code("print(6 * 7)")).stdout == "42\n"
    assert sandbox.exec(Code("echo bash", "bash")).stdout == "bash\n"
    assert sandbox.exec("pwd; echo $A", cwd="/tmp", env={"A": "b"}).stdout == "/tmp\nb\n"


def test_output_is_limited_when_it_is_collected(sandbox: Sandbox) -> None:
    result = sandbox.exec("echo 12345", max_output_bytes=3)
    assert (result.stdout, result.truncated) == ("123", True)


def test_a_command_that_takes_too_long_is_killed(sandbox: Sandbox) -> None:
    assert sandbox.exec("sleep 100", timeout=0.2).timed_out


def test_lines_and_chunks_arrive_with_their_streams(sandbox: Sandbox) -> None:
    assert list(sandbox.spawn("echo one; echo two >&2; printf three").lines()) == ["one", "two", "three"]
    lines = sandbox.spawn("echo one; echo two >&2").output_lines()
    assert [(line.stream, line.text) for line in lines] == [("stdout", "one"), ("stderr", "two")]
    [chunk] = sandbox.spawn("printf abc >&2").chunks()
    assert (chunk.stream, chunk.data, chunk.offset) == ("stderr", b"abc", 3)


def test_stdin_is_written_while_it_runs(sandbox: Sandbox) -> None:
    with sandbox.spawn("read name; echo hello $name; cat") as process:
        process.write("you\n")
        process.write(b"and the rest")
        process.close_stdin()
        assert process.collect().stdout == "hello you\nand the rest"
    with pytest.raises(NotFoundError):
        process.info()


@pytest.mark.parametrize("kind", ["text", "bytes", "iterable", "file"])
def test_large_stdin_arrives_completely(sandbox: Sandbox, kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    data = b"0123456789abcdef" * 40_000
    file = tmp_path_factory.mktemp("stdin") / "data"
    file.write_bytes(data)
    with file.open("rb") as opened:
        given = {"text": data.decode(), "bytes": data, "iterable": iter([data[:1000], data[1000:]]), "file": opened}
        assert sandbox.exec(["cat"], stdin=given[kind]).stdout == data.decode()  # type: ignore[arg-type]


def test_a_reader_continues_at_its_offset(sandbox: Sandbox) -> None:
    process = sandbox.spawn("for i in $(seq 1 5); do echo $i; done")
    for line in process.lines():
        assert line == "1"
        break
    again = sandbox.process(process.id, offset=2)
    assert again.collect().stdout == "2\n3\n4\n5\n"
    assert again.exit is not None
    assert again.exit.exit_code == 0
    assert again.offset == 10
    assert process.id in [one.id for one in sandbox.processes()]


def test_output_is_read_once(sandbox: Sandbox) -> None:
    process = sandbox.spawn("echo once")
    process.wait()
    with pytest.raises(ConflictError, match="already being read"):
        process.wait()


def test_signals_end_a_process(sandbox: Sandbox) -> None:
    process = sandbox.spawn("sleep 100")
    process.kill("SIGTERM")
    assert process.wait().signal == "SIGTERM"


def test_a_terminal_has_a_size(sandbox: Sandbox) -> None:
    terminal = sandbox.pty("read line; stty size", rows=24, columns=80)
    terminal.resize(50, 120)
    terminal.write("go\n")
    assert "50 120" in terminal.collect().stdout


def test_detached_processes_need_no_reader(sandbox: Sandbox) -> None:
    process = sandbox.spawn("echo quiet", detach=True)
    gone = process.detach()
    assert gone.id == process.id
    assert sandbox.process(gone.id, offset=0).collect().stdout == "quiet\n"


def eventually(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_cut_connection_loses_nothing(proxy: CuttingProxy) -> None:
    states: list[str] = []
    with Sandbox.create(url=proxy.url) as sandbox:
        process = sandbox.spawn("echo first; read line; echo $line; read line; echo $line", on_connection=states.append)
        text = b""
        for chunk in process.chunks():
            text += chunk.data
            assert chunk.offset == len(text)
            answer = {b"first\n": "second\n", b"first\nsecond\n": "third\n"}.get(text)
            if answer is not None:
                connections = states.count("attached")
                proxy.cut()
                eventually(lambda connections=connections: states.count("attached") > connections)  # type: ignore[misc]
                process.write(answer)
        assert text == b"first\nsecond\nthird\n"
    assert proxy.cuts > 0
    assert states == ["attached", "lost", "attached", "lost", "attached"]


def test_a_handoff_in_the_middle_loses_no_byte(urls: list[str]) -> None:
    with Sandbox.create(url=urls[0]) as sandbox:
        process = sandbox.spawn("echo before; read line; echo $line")
        text = ""
        for chunk in process.chunks():
            text += chunk.data.decode()
            if text == "before\n":
                assert sandbox.handoff(urls[1]).sandbox.owner is not None
                process.write("after\n")
        assert text == "before\nafter\n"
        assert process.exit is not None


def test_a_pause_ends_the_loop_of_a_reader_which_keeps_its_offset(url: str) -> None:
    async def use() -> None:
        async with await AsyncSandbox.create(url=url) as sandbox:
            process = await sandbox.spawn("echo one; read line; echo $line")
            with pytest.raises(ConflictError, match="paused while you followed") as ended:
                async for _ in process.chunks():
                    await sandbox.checkpoint()
            assert ended.value.details["offset"] == 4
            again = await sandbox.process(process.id, offset=4)
            await again.write("two\n")
            assert (await again.collect()).stdout == "two\n"

    asyncio.run(use())


def test_a_cancelled_call_kills_its_process(url: str) -> None:
    async def use() -> None:
        async with await AsyncSandbox.create(url=url) as sandbox:
            seen = asyncio.Event()
            call = asyncio.create_task(sandbox.exec("sleep 1000", on_connection=lambda state: seen.set()))
            await seen.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            [process] = await sandbox.processes()
            assert (await (await sandbox.process(process.id)).wait()).signal == "SIGKILL"

    asyncio.run(use())
