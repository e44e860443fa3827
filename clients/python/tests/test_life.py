"""Sandboxes come, are found, and go."""

from __future__ import annotations

import asyncio

import pytest

from sandboxer import (
    AsyncSandbox,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    Sandbox,
    Sandboxer,
    SandboxerError,
    UnreachableError,
)

MISSING = "00000000-0000-4000-8000-000000000000"


def test_a_sandbox_is_deleted_at_the_end_of_its_block(client: Sandboxer) -> None:
    with Sandbox.create(client=client, labels={"team": "ml"}, ttl="4h", env={"WHO": "you"}) as sandbox:
        assert sandbox.record.state == "running"
        assert sandbox.record.labels == {"team": "ml"}
        assert sandbox.token is not None
        assert sandbox.exec("echo $WHO").stdout == "you\n"
    with pytest.raises(NotFoundError):
        Sandbox.attach(sandbox.id, client=client).exec("true")


def test_keep_saves_a_sandbox_instead(client: Sandboxer) -> None:
    with Sandbox.create(client=client, keep=True) as sandbox:
        sandbox.files.write("/tmp/note", "kept")
    again = Sandbox.attach(sandbox.id, client=client)
    assert again.record.state == "stored"
    assert again.files.read_text("/tmp/note") == "kept"
    again.destroy()


def test_a_key_finds_the_same_sandbox(client: Sandboxer) -> None:
    first = Sandbox.acquire(client=client, key="python-key")
    second = Sandbox.acquire(client=client, key="python-key")
    assert [first.tier, second.tier] == ["fresh", "reattached"]
    assert first.id == second.id
    assert first.token is not None
    assert second.token is None
    assert first.destroy().removed_bytes is not None


def test_lists_have_filters_and_pages(client: Sandboxer) -> None:
    made = [Sandbox.create(client=client, labels={"list": "python"}) for _ in range(3)]
    found = [one.id for one in Sandbox.list(client=client, label="list=python", limit=2)]
    assert found == [one.id for one in reversed(made)]
    for one in made:
        one.destroy()


def test_settings_change_while_it_runs(sandbox: Sandbox) -> None:
    assert sandbox.update(name="renamed", labels={"a": "b"}).name == "renamed"
    assert sandbox.extend_ttl("2h").expires_at is not None
    preview = sandbox.preview_retention({"checkpoints": {"keep_last": 1}})
    assert preview.checkpoints.going == []
    with pytest.raises(ConflictError, match="stale_epoch"):
        sandbox.update(name="other", epoch=(sandbox.record.epoch or 0) + 7)


def test_errors_have_a_class_a_code_and_a_next_step(client: Sandboxer) -> None:
    with pytest.raises(NotFoundError) as missing:
        Sandbox.attach(MISSING, client=client)
    assert (missing.value.code, missing.value.status) == ("sandbox_not_found", 404)
    assert "sandboxer ls" in missing.value.hint
    with pytest.raises(InvalidRequestError, match="ttl"):
        Sandbox.create(client=client, ttl="4hours")
    with pytest.raises(InvalidRequestError, match="not the URL of a server"):
        Sandbox.create(url="ftp://example.com")
    with pytest.raises(UnreachableError) as unreachable:
        Sandbox.create(url="http://127.0.0.1:1")
    assert unreachable.value.retryable


def test_a_sandbox_reports_on_itself(sandbox: Sandbox) -> None:
    assert sandbox.stats().memory_bytes is not None
    assert sandbox.reachability().reachable
    assert sandbox.usage().sandbox_id == sandbox.id
    assert sandbox.network().policy == "none"
    assert sandbox.refresh().id == sandbox.id


def test_the_server_reports_on_itself(client: Sandboxer, sandbox: Sandbox) -> None:
    assert client.info().sandboxes >= 1
    assert any(backend.default for backend in client.backends())
    assert [one.here for one in client.instances()].count(True) == 1
    assert isinstance(client.profiles(), list)
    assert client.expire().applied is False
    assert all(len(record.used.time) <= 1 for record in client.usage(points=1))
    assert client.scrub_status().running in (True, False)


def test_async_has_the_same_calls(url: str) -> None:
    async def use() -> tuple[str, list[str]]:
        async with await AsyncSandbox.create(url=url, labels={"async": "yes"}) as sandbox:
            results = await asyncio.gather(*(sandbox.exec(f"echo {number}") for number in range(3)))
            found = [one.id async for one in AsyncSandbox.list(url=url, label="async=yes")]
            assert found == [sandbox.id]
            return sandbox.id, [result.stdout for result in results]

    id, outputs = asyncio.run(use())
    assert outputs == ["0\n", "1\n", "2\n"]
    # The same objects work in another event loop.
    with pytest.raises(SandboxerError):
        asyncio.run(AsyncSandbox.attach(id, url=url)).record  # noqa: B018
        asyncio.run(_exec(url, id))


async def _exec(url: str, id: str) -> None:
    await (await AsyncSandbox.attach(id, url=url)).exec("true")


def test_one_client_works_in_several_event_loops(url: str) -> None:
    from sandboxer import AsyncSandboxer

    client = AsyncSandboxer(url=url)
    versions = [asyncio.run(client.info()).version for _ in range(2)]
    assert versions[0] == versions[1]
