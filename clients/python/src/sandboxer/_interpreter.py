"""Code interpreters: contexts with variables that persist between cells."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import httpx

from ._calls import SandboxCalls
from ._decode import decode, decode_all
from ._options import CallOptions
from ._process import closing
from ._transport import Wire
from .errors import error_of_fields, failure
from .models import CellResult, InterpreterContext

if TYPE_CHECKING:
    from typing_extensions import Unpack

CellStatus = Literal["ok", "error", "interrupted", "died"]
MAX_OUTPUT = 10_485_760


@dataclass(frozen=True)
class CellStarted:
    context_id: str
    cell_id: str
    execution_count: int
    #: Whether the interpreter was just started, without variables.
    fresh: bool
    type: Literal["started"] = "started"


@dataclass(frozen=True)
class CellText:
    type: Literal["stdout", "stderr"]
    text: str
    #: ISO 8601, UTC.
    time: str


@dataclass(frozen=True)
class CellValue:
    result: CellResult
    type: Literal["result"] = "result"


@dataclass(frozen=True)
class CellError:
    """An exception that ended a cell."""

    name: str
    value: str
    traceback: str
    type: Literal["error"] = "error"


@dataclass(frozen=True)
class CellEnd:
    #: ``died``: the interpreter ended during the cell, with its variables.
    status: CellStatus
    execution_count: int
    timed_out: bool
    #: The exit code of an interpreter that died.
    exit_code: int | None
    signal: str | None
    type: Literal["end"] = "end"


#: An event of a running cell.
CellEvent = CellStarted | CellText | CellValue | CellError | CellEnd


@dataclass(frozen=True)
class CellExecution:
    """A cell with all its output. Programs in the sandbox chose the results: treat them as untrusted data."""

    context_id: str
    cell_id: str
    execution_count: int
    status: CellStatus
    stdout: str
    stderr: str
    results: list[CellResult]
    #: The text of the last expression's value.
    text: str | None
    #: An exception of the code. Failures of the call itself are raised.
    error: CellError | None
    #: There was more output than ``max_output_bytes``.
    truncated: bool
    timed_out: bool


class CellOptions(CallOptions, total=False):
    #: The language of the cell. Default: the interpreter's.
    language: str | None
    #: The context of the cell: an id. Default: the interpreter's.
    context: str | None
    #: Variables for this cell only.
    env: dict[str, str] | None
    #: Seconds after which the cell is interrupted; if it does not stop, its interpreter is killed.
    timeout: float | None
    #: The effect on the cell if this client disconnects or is cancelled. Default: interrupt.
    on_disconnect: Literal["interrupt", "keep"] | None


class InterpreterOptions(TypedDict, total=False):
    #: The language of cells without a context. Default: python.
    language: str | None
    #: The context of all its cells: an id. Default: the default context of the language.
    context: str | None


class AsyncInterpreter:
    """The code interpreters of a sandbox: contexts with variables that persist between cells."""

    def __init__(self, calls: SandboxCalls, options: InterpreterOptions) -> None:
        self._calls = calls
        self._language = options.get("language") or "python"
        self._context = options.get("context")

    async def run(
        self,
        code: str,
        *,
        on_event: Callable[[CellEvent], object] | None = None,
        max_output_bytes: int = MAX_OUTPUT,
        **options: Unpack[CellOptions],
    ) -> CellExecution:
        """Runs a cell to its end. An exception of the code is in ``error``; only failures of the call are raised."""
        collected = _Collected(max_output_bytes)
        async with closing(self.stream(code, **options)) as events:
            async for event in events:
                if on_event is not None:
                    on_event(event)
                collected.add(event)
        return collected.execution()

    async def stream(self, code: str, **options: Unpack[CellOptions]) -> AsyncIterator[CellEvent]:
        """Runs a cell and yields its events. Follows the cell if its sandbox is paused or moves
        meanwhile."""
        body = {"code": code, **self._target(options.get("context"), options.get("language"))}
        for name in ("env", "timeout", "on_disconnect"):
            if options.get(name) is not None:
                body[name] = options[name]
        wire = Wire(epoch=options.get("epoch"))
        opening = self._calls.open("runCell", body=body, wire=wire, accept="application/x-ndjson", repeatable=False)
        moved: dict[str, Any] | None = None
        while True:
            async with opening as response:
                async for line in _lines(response):
                    moved = line if line["event"] == "moving" else None
                    event = None if moved is not None else _event(line)
                    if event is not None:
                        yield event
                    if moved is not None or isinstance(event, CellEnd):
                        break
                else:
                    raise failure(
                        "server_unreachable",
                        "The connection was lost before the end of the cell.",
                        "The cell may still run: `contexts()` says whether its context is busy.",
                    )
            if moved is None:
                return
            params = {"context_id": moved["context_id"], "cell_id": moved["cell_id"]}
            opening = self._calls.open("followCell", params=params, query={"offset": moved["offset"] or None})

    async def create_context(
        self, *, language: str | None = None, cwd: str | None = None, **options: Unpack[CallOptions]
    ) -> InterpreterContext:
        """Starts an interpreter with its own variables. ``cwd``: the folder that it starts in."""
        body = {"language": language or self._language, **({} if cwd is None else {"cwd": cwd})}
        return decode(InterpreterContext, await self._calls.call("createContext", body=body, wire=Wire(**options)))

    async def contexts(self) -> list[InterpreterContext]:
        """All interpreters of the sandbox, oldest first."""
        return decode_all(InterpreterContext, (await self._calls.call("listContexts"))["items"])

    async def restart(self, context: str | None = None, **options: Unpack[CallOptions]) -> InterpreterContext:
        """Starts the interpreter of a context again, without its variables."""
        return decode(InterpreterContext, await self._ask("restartContext", context, options))

    async def interrupt(self, context: str | None = None, **options: Unpack[CallOptions]) -> None:
        """Interrupts the running cell, like Ctrl-C."""
        await self._ask("interruptContext", context, options)

    async def delete_context(self, context: str | None = None, **options: Unpack[CallOptions]) -> None:
        """Ends an interpreter."""
        await self._ask("deleteContext", context, options)

    async def _ask(self, name: str, context: str | None, options: CallOptions) -> Any:
        params = {"context_id": context or self._context or self._language}
        return await self._calls.call(name, params=params, wire=Wire(**options))

    def _target(self, context: str | None, language: str | None) -> dict[str, Any]:
        if context is not None or (language is None and self._context is not None):
            return {"context_id": context or self._context}
        return {"language": language or self._language}


async def _lines(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    async for text in response.aiter_lines():
        if text:
            yield json.loads(text)


def _event(line: dict[str, Any]) -> CellEvent | None:
    kind = line["event"]
    if kind == "error":
        raise error_of_fields(line)
    if kind == "started":
        return CellStarted(line["context_id"], line["cell_id"], line["execution_count"], line["fresh"])
    if kind == "result":
        return CellValue(decode(CellResult, line["result"]))
    if kind == "exception":
        return CellError(line["name"], line["value"], line["traceback"])
    if kind == "end":
        return CellEnd(line["status"], line["execution_count"], line["timed_out"], line["exit_code"], line["signal"])
    return CellText(kind, line["data"], line["time"]) if kind in ("stdout", "stderr") else None


@dataclass
class _Collected:
    """Joins the events of a cell, up to a limit."""

    room: int
    texts: dict[str, list[str]] = field(default_factory=lambda: {"stdout": [], "stderr": []})
    results: list[CellResult] = field(default_factory=list)
    error: CellError | None = None
    started: CellStarted | None = None
    end: CellEnd | None = None
    truncated: bool = False

    def add(self, event: CellEvent) -> None:
        if isinstance(event, CellStarted):
            self.started = event
        elif isinstance(event, CellEnd):
            self.end = event
        elif isinstance(event, CellError):
            self.error = event
        elif isinstance(event, CellValue):
            size = len(json.dumps(vars(event.result), default=vars))
            if self.truncated or size > self.room:
                self.truncated = True
            else:
                self.room -= size
                self.results.append(event.result)
        else:
            text = "" if self.truncated else event.text[: self.room]
            self.truncated = self.truncated or len(text) < len(event.text)
            self.room -= len(text)
            self.texts[event.type].append(text)

    def execution(self) -> CellExecution:
        started, end = self.started, self.end
        return CellExecution(
            context_id=started.context_id if started else "",
            cell_id=started.cell_id if started else "",
            execution_count=end.execution_count if end else 0,
            status=end.status if end else "died",
            stdout="".join(self.texts["stdout"]),
            stderr="".join(self.texts["stderr"]),
            results=self.results,
            text=next((result.text for result in self.results if result.main), None),
            error=self.error,
            truncated=self.truncated,
            timed_out=end.timed_out if end else False,
        )
