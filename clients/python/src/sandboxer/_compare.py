"""Compares sandboxes, usually forks of one another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from ._options import Command
from ._process import ExecResult
from .errors import SandboxerError
from .models import ListeningPort, ProcessRecord, SandboxStats, SnapshotDiff

if TYPE_CHECKING:
    from ._sandbox import AsyncSandbox

Fact = TypeVar("Fact")


@dataclass(frozen=True)
class ComparedSandbox:
    """One of the compared sandboxes. A fact that could not be read is None, and ``problems`` has the reason."""

    id: str
    name: str | None
    #: The files that changed since the base; None also for the base itself.
    files: SnapshotDiff | None
    #: The processes that run, before the command.
    processes: list[ProcessRecord] | None
    ports: list[ListeningPort] | None
    usage: SandboxStats | None
    #: The result of the command; None also without a command.
    run: ExecResult | None
    problems: list[str]


@dataclass(frozen=True)
class Comparison:
    #: The base of the comparison: the snapshot that all sandboxes come from, or the first sandbox.
    base_kind: Literal["snapshot", "sandbox"]
    base_id: str
    items: list[ComparedSandbox]


async def compare(sandboxes: Sequence[AsyncSandbox], command: Command | None, limit: int) -> Comparison:
    base_kind, base_id = await _base(sandboxes)
    base = base_id if base_kind == "snapshot" else f"sandbox:{base_id}"
    items = await asyncio.gather(
        *(_compared(one, None if one.id == base_id else base, command, limit) for one in sandboxes)
    )
    return Comparison(base_kind, base_id, list(items))


async def _compared(sandbox: AsyncSandbox, base: str | None, command: Command | None, limit: int) -> ComparedSandbox:
    problems: list[str] = []

    async def read(what: str, work: Awaitable[Fact]) -> Fact | None:
        try:
            return await work
        except SandboxerError as error:
            problems.append(f"{what}: {error.message}")
            return None

    async def files() -> SnapshotDiff | None:
        return None if base is None else await sandbox.diff(base, limit=limit)

    async def processes() -> list[ProcessRecord]:
        return [one for one in await sandbox.processes() if one.state == "running"]

    changed, running, ports, usage = await asyncio.gather(
        read("files", files()),
        read("processes", processes()),
        read("ports", sandbox.ports()),
        read("usage", sandbox.stats()),
    )
    result = None if command is None else await read("command", sandbox.exec(command))
    return ComparedSandbox(sandbox.id, sandbox.record.name, changed, running, ports, usage, result, problems)


async def _base(sandboxes: Sequence[AsyncSandbox]) -> tuple[Literal["snapshot", "sandbox"], str]:
    """Every sandbox comes from this snapshot, or is the one that was captured; if there is none, the first sandbox."""
    first = sandboxes[0]
    id = next((one.record.origin.snapshot_id for one in sandboxes if one.record.origin.snapshot_id), None)
    if id is None:
        return "sandbox", first.id
    parents = {one.id for one in sandboxes if one.record.origin.snapshot_id != id}
    try:
        parents.discard((await first.client.snapshots.get(id)).sandbox_id)
    except SandboxerError:
        return "sandbox", first.id
    return ("sandbox", first.id) if parents else ("snapshot", id)
