"""Pauses, snapshots, forks, rewinds, handoffs, and what is reported about them."""

from __future__ import annotations

import pytest

from sandboxer import InvalidRequestError, Sandbox, Sandboxer
from sandboxer.models import OperationRecord


def test_a_paused_sandbox_resumes_when_it_is_used(sandbox: Sandbox) -> None:
    sandbox.exec("echo before > /tmp/file")
    assert sandbox.pause().state == "stored"
    assert sandbox.exec("cat /tmp/file").stdout == "before\n"
    assert sandbox.checkpoint(leave_running=True).state == "running"
    sandbox.checkpoint()
    assert sandbox.resume().state == "running"
    assert sandbox.verify().images.damaged == 0


def test_a_rewind_restores_the_snapshot_and_a_fork_keeps_its_state(client: Sandboxer, sandbox: Sandbox) -> None:
    sandbox.exec("echo before > /tmp/file")
    snapshot = sandbox.snapshot(name="python-before", labels={"a": "b"})
    sandbox.exec("echo after > /tmp/file")
    assert [change.path for change in sandbox.diff(snapshot.id).changes] == ["/tmp/file"]
    [copy] = sandbox.fork(count=1)
    assert sandbox.rewind("python-before").state == "running"
    assert sandbox.exec("cat /tmp/file").stdout == "before\n"
    assert copy.exec("cat /tmp/file").stdout == "after\n"
    copy.destroy()
    restored = Sandbox.restore(snapshot.id, client=client)
    assert restored.exec("cat /tmp/file").stdout == "before\n"
    assert restored.carried is None or restored.carried.loadable
    restored.destroy()


def test_forks_are_compared_and_the_best_is_promoted(client: Sandboxer, sandbox: Sandbox) -> None:
    forks = sandbox.fork(count=2)
    for number, fork in enumerate(forks):
        fork.exec(f"echo {number} > /tmp/answer")
    compared = sandbox.compare(forks, "cat /tmp/answer")
    assert compared.base_kind == "snapshot"
    assert [item.run.stdout if item.run else None for item in compared.items[1:]] == ["0\n", "1\n"]
    assert [[change.path for change in item.files.changes] if item.files else None for item in compared.items[1:]] == [
        ["/tmp/answer"],
        ["/tmp/answer"],
    ]
    promoted = forks[1].promote(discard_others=True)
    assert (promoted.sandbox.id, sorted(promoted.deleted)) == (sandbox.id, sorted(fork.id for fork in forks))
    assert sandbox.exec("cat /tmp/answer").stdout == "1\n"
    with pytest.raises(InvalidRequestError, match="created from scratch"):
        sandbox.promote()


def test_snapshots_are_listed_changed_and_deleted(client: Sandboxer, sandbox: Sandbox) -> None:
    first, second = sandbox.snapshot(), sandbox.snapshot()
    assert [one.id for one in sandbox.snapshots()] == [second.id, first.id]
    assert client.snapshots.update(first.id, pinned=True, name="python-pinned").pinned
    assert client.snapshots.get("python-pinned", verify=True).state == "ready"
    assert client.snapshots.diff(first.id, second.id).from_ == first.id
    assert client.snapshots.explain(first.id).loadable
    assert client.snapshots.verify(first.id).problems == []
    client.snapshots.update(first.id, pinned=False)
    for one in (first, second):
        client.snapshots.delete(one.id)
    assert list(sandbox.snapshots()) == []


def test_long_calls_report_their_progress(client: Sandboxer, sandbox: Sandbox) -> None:
    seen: list[OperationRecord] = []
    sandbox.checkpoint(on_progress=seen.append)
    assert seen[-1].state == "done"
    assert seen[-1].sandbox_id == sandbox.id
    assert client.operation(seen[-1].id, wait=1).kind == "checkpoint"
    assert seen[-1].id in [one.id for one in client.operations(sandbox_id=sandbox.id)]


def test_a_handle_follows_its_sandbox_to_another_server(urls: list[str]) -> None:
    with Sandbox.create(url=urls[0]) as sandbox:
        sandbox.exec("echo here > /tmp/file")
        moved = sandbox.handoff(urls[1])
        assert moved.sandbox.id == sandbox.id
        assert sandbox.exec("cat /tmp/file").stdout == "here\n"
        # A client of the first server finds it too, and a relay passes calls on.
        assert Sandbox.attach(sandbox.id, url=urls[0]).exec("cat /tmp/file").stdout == "here\n"
        assert Sandbox.attach(sandbox.id, url=urls[0], relay=True).exec("cat /tmp/file").stdout == "here\n"


def test_events_continue_after_their_cursor(client: Sandboxer, sandbox: Sandbox) -> None:
    [first, *_] = client.call("events", query={"sandbox_id": sandbox.id})["items"]
    connections: list[bool] = []
    events = sandbox.events(cursor=first["cursor"], on_connection=lambda up, cursor: connections.append(up))
    event = next(events)
    assert (event.type, event.sandbox_id) == ("sandbox.state", sandbox.id)
    assert event.cursor != first["cursor"]
    events.close()  # type: ignore[attr-defined]
    assert connections == [True, False]
