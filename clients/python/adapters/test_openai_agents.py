from __future__ import annotations

import asyncio
import io
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from agents.sandbox import LocalSnapshotSpec, Manifest
from agents.sandbox.entries import File
from agents.sandbox.errors import (
    ExecTimeoutError,
    InvalidManifestPathError,
    PtySessionNotFoundError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
)
from agents.sandbox.manifest import Environment
from agents.sandbox.session import SandboxSession
from conftest import example

from sandboxer import AsyncSandbox, AsyncSandboxer
from sandboxer.openai_agents import SandboxerClient, SandboxerClientOptions, inner_session, sandbox_of

COUNTING = "n=0; while true; do n=$((n + 1)); echo $n > /tmp/beats; sleep 0.05; done"
ON = 'a=$(cat /tmp/beats); while [ "$(cat /tmp/beats)" = "$a" ]; do sleep 0.05; done; echo on'


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[SandboxerClient]:
    async with AsyncSandboxer(url=url) as client:
        yield SandboxerClient(client=client)


def in_session(url: str, work: Callable[[SandboxSession], Awaitable[None]], **more: Any) -> None:
    async def run() -> None:
        async with connected(url) as client:
            session = await client.create(**more)
            async with session:
                await work(session)
            assert (await _state(client, sandbox_of(session))) == "destroyed"

    asyncio.run(run())


async def _state(client: SandboxerClient, sandbox: AsyncSandbox) -> str:
    found = [each async for each in AsyncSandbox.list(client=client.sandboxer) if each.id == sandbox.id]
    return found[0].record.state if found else "destroyed"


def test_commands_files_and_patches(url: str) -> None:
    async def work(session: SandboxSession) -> None:
        result = await session.exec("echo out; echo err >&2; exit 3")
        assert (result.stdout, result.stderr, result.exit_code) == (b"out\n", b"err\n", 3)
        assert (await session.exec("cat from/manifest.txt")).stdout == b"given"
        assert (await session.exec("echo $GREETING")).stdout == b"hello\n"
        binary = bytes(range(256)) * 1000
        await session.write(Path("deep/er/binary"), io.BytesIO(binary))
        assert (await session.read(Path("deep/er/binary"))).read() == binary
        assert (await session.exec("cat deep/er/binary")).stdout == binary
        assert await session.read_bounded(Path("deep/er/binary"), max_bytes=3) == bytes(range(3))
        assert [Path(entry.path).name for entry in await session.ls("deep")] == ["er"]
        patch = {"type": "update_file", "path": "from/manifest.txt", "diff": "-given\n+patched\n"}
        await session.apply_patch(patch)
        assert (await session.read(Path("from/manifest.txt"))).read().strip() == b"patched"
        with pytest.raises(WorkspaceReadNotFoundError):
            await session.read(Path("missing"))
        with pytest.raises(ExecTimeoutError):
            await session.exec("sleep 1000", timeout=1)
        await session.exec("ln -s /etc link")
        with pytest.raises(InvalidManifestPathError):
            await session.read(Path("link/passwd"))

    manifest = Manifest(
        entries={"from/manifest.txt": File(content=b"given")},
        environment=Environment(value={"GREETING": "hello"}),
    )
    in_session(url, work, manifest=manifest)


def test_a_terminal_takes_input_over_several_calls(url: str) -> None:
    async def work(session: SandboxSession) -> None:
        begun = await session.pty_exec_start("read a; echo got $a; read b; exit $b", tty=True, yield_time_s=0.3)
        assert begun.process_id is not None
        answered = b""
        while b"got one" not in answered:
            update = await session.pty_write_stdin(
                session_id=begun.process_id, chars="" if answered else "one\n", yield_time_s=1
            )
            answered += update.output
        ended = await session.pty_write_stdin(session_id=begun.process_id, chars="7\n", yield_time_s=30)
        assert (ended.exit_code, ended.process_id) == (7, None)
        with pytest.raises(PtySessionNotFoundError):
            await session.pty_write_stdin(session_id=begun.process_id, chars="x")
        left = await session.pty_exec_start("sleep 4321", yield_time_s=0.3)
        assert left.exit_code is None
        await session.pty_terminate_all()
        assert (await session.exec("pgrep -f [s]leep.4321")).exit_code == 1

    in_session(url, work)


def test_an_exposed_port_opens(url: str) -> None:
    async def work(session: SandboxSession) -> None:
        await session.write(Path("index.html"), io.BytesIO(b"served"))
        await sandbox_of(session).spawn("python3 -m http.server 8000 --directory /workspace", detach=True)
        await session.exec("until echo > /dev/tcp/127.0.0.1/8000; do sleep 0.05; done", shell=["bash", "-c"])
        endpoint = await session.resolve_exposed_port(8000)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor())
        address = endpoint.url_for("http").replace(endpoint.host, "127.0.0.1")
        request = urllib.request.Request(address, headers={"host": f"{endpoint.host}:{endpoint.port}"})
        answer = await asyncio.to_thread(lambda: opener.open(request).read())
        assert answer == b"served"

    in_session(url, work, options=SandboxerClientOptions(exposed_ports=(8000,)))


def test_a_deleted_sandbox_resumes_from_its_snapshot_with_its_programs(url: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with connected(url) as client:
            first = await client.create(snapshot=LocalSnapshotSpec(base_path=tmp_path))
            async with first:
                await first.write(Path("kept"), io.BytesIO(b"state"))
                await sandbox_of(first).spawn(COUNTING, detach=True)
            await client.delete(first)
            assert await _state(client, sandbox_of(first)) == "destroyed"
            payload = client.serialize_session_state(first.state)
            second = await client.resume(client.deserialize_session_state(payload))
            async with second:
                assert sandbox_of(second).id != sandbox_of(first).id
                assert (await second.read(Path("kept"))).read() == b"state"
                assert (await second.exec(ON, timeout=60)).stdout == b"on\n"

    asyncio.run(run())


def test_a_paused_sandbox_resumes_in_place(url: str) -> None:
    async def run() -> None:
        async with connected(url) as client:
            first = await client.create(options=SandboxerClientOptions(pause_on_exit=True))
            async with first:
                await first.write(Path("kept"), io.BytesIO(b"state"))
                await sandbox_of(first).spawn(COUNTING, detach=True)
            await client.delete(first)
            assert await _state(client, sandbox_of(first)) == "stored"
            second = await client.resume(first.state)
            async with second:
                assert sandbox_of(second).id == sandbox_of(first).id
                assert (await second.read(Path("kept"))).read() == b"state"
                assert (await second.exec(ON, timeout=60)).stdout == b"on\n"
            await sandbox_of(second).destroy()

    asyncio.run(run())


def test_ephemeral_files_are_not_persisted(url: str, tmp_path: Path) -> None:
    async def run() -> None:
        manifest = Manifest(entries={"secret.txt": File(content=b"secret", ephemeral=True)})
        async with connected(url) as client:
            session = await client.create(manifest=manifest, snapshot=LocalSnapshotSpec(base_path=tmp_path))
            async with session:
                await session.write(Path("kept"), io.BytesIO(b"state"))
                await session.exec("ln -s kept link")
            assert b"secret" not in (tmp_path / f"{session.state.snapshot.id}.tar").read_bytes()
            again = await client.resume(session.state)
            async with again:
                assert (await again.exec("cat link secret.txt")).stdout == b"statesecret"

    asyncio.run(run())


@pytest.mark.parametrize(
    "content",
    [
        b"SANDBOXER_SNAPSHOT_V1\n{",
        b"SANDBOXER_SNAPSHOT_V1\n{}",
        b'SANDBOXER_SNAPSHOT_V1\n{"snapshot_id": "never-taken"}',
        b"neither a tar nor a reference",
    ],
)
def test_a_damaged_workspace_is_refused(url: str, content: bytes) -> None:
    async def work(session: SandboxSession) -> None:
        with pytest.raises(WorkspaceArchiveWriteError):
            await inner_session(session).hydrate_workspace(io.BytesIO(content))
        assert (await session.exec("echo still here")).stdout == b"still here\n"

    in_session(url, work)


def test_the_example_breaks_its_workspace_and_rewinds_it(url: str) -> None:
    async def run() -> list[str]:
        async with AsyncSandboxer(url=url) as client:
            return [line async for line in example("openai-agents").outputs_of_run(client)]

    said = asyncio.run(run())
    assert said[1].startswith("checkpoint: Saved as ")
    assert "removed /workspace/answer.txt" in said[3]
    assert said[4].startswith("rewind: Rewound to ")
    assert said[5].endswith("42")
    assert said[6] == "It was 42."
