"""Functions that the adapters for agent frameworks offer as tools, so that an agent can rewind its own sandbox."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable

from ._portal import run
from ._sandbox import AsyncSandbox
from .errors import SandboxerError
from .models import SnapshotRecord

#: The label of a snapshot that keeps an agent's note; the MCP tools use the same.
NOTE_LABEL = "note"
MAX_NOTE = 1000
MAX_SHOWN_CHANGES = 200

Tool = Callable[..., Awaitable[str]]


def checkpoint_functions(sandbox: Callable[[], AsyncSandbox]) -> list[Tool]:
    """``checkpoint``, ``history``, ``diff`` and ``rewind`` of a sandbox. Their docstrings are for the agent, and so are
    failures: they are answers, not exceptions."""

    async def checkpoint(note: str) -> str:
        """Save the whole state of the sandbox: files, memory and running programs. It keeps running. Take a checkpoint
        before anything risky, with a note on what the state is; rewind to it if that fails."""
        return f"Saved as {_shown(await _capture(sandbox(), note))}"

    async def history() -> str:
        """List the checkpoints of the sandbox, oldest first."""
        records = [record async for record in sandbox().snapshots()]
        return "\n".join(_shown(record) for record in reversed(records)) or "There is no checkpoint."

    async def diff(checkpoint_id: str) -> str:
        """List the files that changed since a checkpoint. Memory is not compared."""
        found = await sandbox().diff(checkpoint_id, limit=MAX_SHOWN_CHANGES)
        lines = [f"{found.added} added, {found.changed} changed, {found.removed} removed"]
        lines += [f"{change.change} {change.path}" for change in found.changes]
        return "\n".join([*lines, *(["and more"] if found.truncated else [])])

    async def rewind(checkpoint_id: str) -> str:
        """Return the sandbox to a checkpoint: files, memory and running programs are as they were then. Everything
        since is undone. The current state is saved first."""
        target = await sandbox().client.snapshots.get(checkpoint_id)
        before = await _capture(sandbox(), f"before the rewind to {target.name or target.id}")
        await sandbox().rewind(target.id)
        return f"Rewound to {_shown(target)}. To undo this, rewind to {before.id}."

    return [_answering(tool) for tool in (checkpoint, history, diff, rewind)]


def blocking(tool: Tool) -> Callable[..., str]:
    """The same for frameworks that call tools in threads."""

    @functools.wraps(tool)
    def call(*args: object, **options: object) -> str:
        async def work() -> str:
            return await tool(*args, **options)

        return run(work())

    return call


def _answering(tool: Tool) -> Tool:
    @functools.wraps(tool)
    async def call(*args: object, **options: object) -> str:
        try:
            return await tool(*args, **options)
        except SandboxerError as error:
            return f"Error: {error}"

    return call


async def _capture(sandbox: AsyncSandbox, note: str) -> SnapshotRecord:
    return await sandbox.snapshot(labels={NOTE_LABEL: note[:MAX_NOTE]})


def _shown(record: SnapshotRecord) -> str:
    return ": ".join(text for text in (record.id, record.name, record.labels.get(NOTE_LABEL)) if text)
