"""Requests: retries, keys, errors. No server: the answers are scripted."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
from collections.abc import Callable

import httpx
import pytest

from sandboxer import (
    AsyncSandboxer,
    AuthenticationError,
    LimitError,
    Retry,
    SandboxerError,
    UnavailableError,
    UnreachableError,
)
from sandboxer._decode import decode
from sandboxer._process_queues import OutputQueue, StdinQueue
from sandboxer._transport import address, base_url, checked_key
from sandboxer.errors import failure
from sandboxer.models import SandboxRecord, SnapshotDiff

Handler = Callable[[httpx.Request], httpx.Response]
QUICK = Retry(attempts=3, first_delay=0, max_delay=0)


def scripted(*answers: object, retry: Retry = QUICK) -> tuple[AsyncSandboxer, list[httpx.Request]]:
    """A client whose requests get these answers, one after the other: a status with a body, or a failure."""
    seen: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        answer = answers[len(seen) - 1]
        if isinstance(answer, Exception):
            raise answer
        status, body = answer  # type: ignore[misc]
        return httpx.Response(status, json=body)

    transport = httpx.MockTransport(handle)
    return AsyncSandboxer(http_transport=transport, retry=retry, api_key="the-key"), seen


def error(code: str, **details: object) -> dict[str, object]:
    return {"error": {"code": code, "message": "m", "hint": "h", "retryable": True, "details": details}}


def call(client: AsyncSandboxer, name: str, **more: object) -> object:
    return asyncio.run(client.call(name, **more))  # type: ignore[arg-type]


def test_all_attempts_of_a_call_carry_one_idempotency_key() -> None:
    client, seen = scripted(httpx.ReadError("cut"), (503, error("starting")), (201, {"id": "x"}))
    assert call(client, "createSandbox", body={"name": "n"}) == {"id": "x"}
    assert len({request.headers["idempotency-key"] for request in seen}) == 1
    assert [json.loads(request.content) for request in seen] == [{"name": "n"}] * 3
    assert seen[0].headers["authorization"] == "Bearer the-key"


def test_a_call_that_may_have_been_carried_out_is_not_repeated() -> None:
    client, seen = scripted(httpx.ReadError("cut"), (200, {}))
    with pytest.raises(UnreachableError):
        call(client, "checkpointSandbox", params={"id": "x"})
    assert len(seen) == 1
    # It never reached the server.
    client, seen = scripted(httpx.ConnectError("refused"), (200, {}))
    assert call(client, "checkpointSandbox", params={"id": "x"}) == {}


def test_a_deletion_whose_answer_was_lost_is_done() -> None:
    client, _ = scripted(httpx.ReadError("cut"), (404, error("sandbox_not_found")))
    assert call(client, "destroySandbox", params={"id": "x"}) is None
    client, _ = scripted((404, error("sandbox_not_found")))
    with pytest.raises(SandboxerError):
        call(client, "destroySandbox", params={"id": "x"})


def test_attempts_are_limited_and_other_errors_are_not_repeated() -> None:
    client, seen = scripted(*[(503, error("starting"))] * 9)
    with pytest.raises(UnavailableError):
        call(client, "serverInfo")
    assert len(seen) == 3
    client, seen = scripted((401, error("unauthorized")))
    with pytest.raises(AuthenticationError):
        call(client, "serverInfo")
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("status", "body", "code", "kind"),
    [
        (500, error("internal"), "internal", SandboxerError),
        (429, error("a_code_of_a_newer_server"), "rate_limited", LimitError),
        (418, error("teapot"), "bad_request", SandboxerError),
        (502, "<html>", "server_unreachable", UnreachableError),
        (400, {"error": "text"}, "bad_request", SandboxerError),
        (400, [], "bad_request", SandboxerError),
    ],
)
def test_any_answer_becomes_an_error(status: int, body: object, code: str, kind: type[SandboxerError]) -> None:
    client, _ = scripted((status, body), retry=Retry(attempts=1))
    with pytest.raises(kind) as thrown:
        call(client, "serverInfo")
    assert thrown.value.code == code
    if isinstance(body, dict) and code == "rate_limited":
        assert thrown.value.details["code"] == "a_code_of_a_newer_server"


def test_an_answer_that_is_not_json_is_an_error() -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(200, text="<html>"))
    with pytest.raises(SandboxerError, match="is not JSON"):
        call(AsyncSandboxer(http_transport=transport), "serverInfo")


def test_errors_can_be_pickled() -> None:
    thrown = failure("wrong_state", "m", "h", {"state": "stored"})
    again = pickle.loads(pickle.dumps(thrown))
    assert (type(again), again.code, again.hint, again.details) == (type(thrown), "wrong_state", "h", thrown.details)


def test_urls_are_normalized_and_escaped() -> None:
    assert base_url("wss://host/base/") == "https://host/base"
    query = {"a": [1, "x y"], "b": None, "c": True}
    assert address("http://h/base", "/v1/{id}/x", {"id": "a/b"}, query) == "http://h/base/v1/a%2Fb/x?a=1&a=x+y&c=true"
    for id in ("", ".", ".."):
        with pytest.raises(SandboxerError, match="not a valid id"):
            address("http://h", "/v1/{id}", {"id": id})


def test_keys_are_neither_printed_nor_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client = AsyncSandboxer(
        url="http://127.0.0.1:1", api_key="the-key", encryption_key="ab" * 32, retry=Retry(attempts=1)
    )
    with pytest.raises(UnreachableError) as thrown:
        call(client, "serverInfo")
    shown = f"{client!r} {client._transport!r} {thrown.value!r} {caplog.text}"
    assert "the-key" not in shown
    assert "abab" not in shown
    with pytest.raises(SandboxerError) as refused:
        checked_key("a password")
    assert "a password" not in str(refused.value)


def test_records_of_older_and_newer_servers_can_be_read() -> None:
    record = decode(SandboxRecord, {"id": "x", "owner": {"instance_id": "i", "url": None, "new": 1}, "new": 2})
    assert record.owner is not None
    assert (record.owner.instance_id, record.name) == ("i", None)
    diff = decode(SnapshotDiff, {"from": "a", "changes": [{"path": "/x", "change": "added"}]})
    assert (diff.from_, diff.changes[0].path) == ("a", "/x")


def test_output_counts_once_and_a_hole_is_an_error() -> None:
    queue = OutputQueue(0, detached=False)
    assert queue.push("stdout", 0, b"abc")
    assert not queue.push("stdout", 0, b"abc")
    assert queue.push("stdout", 2, b"cd")
    assert [queue.shift(), queue.shift()] != [None, None]
    assert queue.taken == 4
    with pytest.raises(SandboxerError, match="from byte 4 to 9"):
        queue.push("stdout", 9, b"x")
    with pytest.raises(SandboxerError, match="no longer available"):
        queue.begin(7)


def test_stdin_in_flight_fails_with_its_connection_and_a_move_sends_the_rest() -> None:
    async def use() -> None:
        queue = StdinQueue(strict=True)
        sent: list[bytes] = []
        write = asyncio.ensure_future(queue.write(b"abcdef"))
        await asyncio.sleep(0)
        queue.connected(lambda data: sent.append(data) is None, lambda: None)
        queue.taken(2)
        queue.disconnected(known=True)
        queue.connected(lambda data: sent.append(data) is None, lambda: None)
        assert sent == [b"abcdef", b"cdef"]
        queue.disconnected(known=False)
        with pytest.raises(UnreachableError, match="while stdin was being sent"):
            await write
        with pytest.raises(UnreachableError):
            await queue.write(b"more")

    asyncio.run(use())
