"""Starts the processes of a sandbox, and finds them again."""

from __future__ import annotations

import asyncio
from typing import Any

from ._calls import SandboxCalls
from ._options import Bytes, Code, Command
from ._process import AsyncSandboxProcess
from ._process_link import LinkOptions
from ._transport import Wire
from .errors import SandboxerError

#: The longest stdin that is sent in the request itself.
INLINE_STDIN_CHARACTERS = 64 * 1024


class Processes:
    def __init__(self, calls: SandboxCalls, token: str | None, reconnect: float = 60, silence: float = 30) -> None:
        self._calls = calls
        self._token = token
        self._reconnecting = {"reconnect": reconnect, "silence": silence}
        #: Tasks that send stdin: the loop itself keeps no reference.
        self._feeding: set[asyncio.Task[None]] = set()

    async def start(self, command: Command, options: dict[str, Any]) -> AsyncSandboxProcess:
        stdin = options.get("stdin")
        inline = isinstance(stdin, str) and len(stdin) <= INLINE_STDIN_CHARACTERS
        wire = Wire(epoch=options.get("epoch"), idempotency_key=options.get("idempotency_key"))
        record = await self._calls.call("exec", body=_body(command, options, inline), wire=wire)
        process = self._handle(record, 0, options)
        if stdin is not None and not inline:
            task = asyncio.create_task(_feed(process, stdin))
            self._feeding.add(task)
            task.add_done_callback(self._feeding.discard)
        return process

    async def attach(self, process_id: str, offset: int | None, options: dict[str, Any]) -> AsyncSandboxProcess:
        record = await self._calls.call("getProcess", params={"process_id": process_id})
        return self._handle(record, offset, options)

    def _handle(self, record: dict[str, Any], offset: int | None, options: dict[str, Any]) -> AsyncSandboxProcess:
        link = LinkOptions(
            calls=self._calls,
            token=self._token,
            process_id=record["id"],
            offset=offset,
            pty=record["pty"],
            detached=record["detached"],
            on_connection=options.get("on_connection"),
            **self._reconnecting,
        )
        return AsyncSandboxProcess(record["pid"], link)


async def _feed(process: AsyncSandboxProcess, stdin: Bytes) -> None:
    """Sends stdin while output is read. A program may end without having read all of it."""
    try:
        await process.write(stdin)
        await process.close_stdin()
    except SandboxerError:
        pass


def _body(command: Command, options: dict[str, Any], inline: bool) -> dict[str, Any]:
    """The request for a process whose output is read over its own connection."""
    pty = options.get("pty")
    fields = {
        "env": options.get("env"),
        "cwd": options.get("cwd"),
        "user": options.get("user"),
        "stdin": options.get("stdin") if inline else None,
        "pty": None if pty is None else {"rows": pty[0], "columns": pty[1]},
        "timeout": options.get("timeout"),
        **({"detach": True} if options.get("detach") else {"wait": False}),
    }
    return {**_what(command), **{name: value for name, value in fields.items() if value is not None}}


def _what(command: Command) -> dict[str, Any]:
    if isinstance(command, str):
        return {"shell": command}
    if isinstance(command, Code):
        return {"language": command.language, "code": command.code}
    return {"command": list(command)}
