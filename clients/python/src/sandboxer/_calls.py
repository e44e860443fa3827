"""Calls about one sandbox, wherever it is."""

from __future__ import annotations

import asyncio
import dataclasses
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from ._bytes import whole
from ._retry import Retry
from ._tables import ROUTES
from ._transport import Transport, Wire
from .errors import SandboxerError, is_code, never_sent

Result = TypeVar("Result")

#: Seconds that another server may take to answer before it counts as unreachable.
OWNER_SECONDS = 3
#: A sandbox that is being saved or moved is available again soon.
MAX_DETOURS = 40
PASSING_STATES = ("saving", "restoring", "creating")


class SandboxCalls:
    """They go to the server that runs the sandbox, and resume it if it is paused."""

    def __init__(
        self, transport: Transport, sandbox_id: str, *, auto_resume: bool = True, follow_owner: bool = True
    ) -> None:
        self.transport = transport
        self.sandbox_id = sandbox_id
        #: Where the sandbox was last found.
        self.url = transport.url
        #: This client has paused the sandbox, so passive listeners must not resume it.
        self.is_put_down = False
        self._auto_resume = auto_resume
        self._follow_owner = follow_owner and not transport.relay
        self._waits = Retry(first_delay=0.05, max_delay=1)
        self._resuming: asyncio.Task[Any] | None = None

    async def call(
        self,
        name: str,
        *,
        params: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        wire: Wire = Wire(),
    ) -> Any:
        route = ROUTES[name]
        one_shot = route.content_type is not None and whole(body) is None
        if one_shot:
            # A stream can be sent only once, so the sandbox must be found and resumed before.
            await self.call("listProcesses")
        # One key for all attempts, wherever they go.
        keyed = dataclasses.replace(wire, idempotency_key=wire.idempotency_key or str(uuid.uuid4()))

        async def work(url: str) -> Any:
            return await self.transport.call(
                name, params=self._params(params), query=query, body=body, wire=dataclasses.replace(keyed, url=url)
            )

        return await self._roaming(work, route.repeatable and not one_shot, 0 if one_shot else MAX_DETOURS)

    async def read(self, name: str, *, query: Mapping[str, Any]) -> bytes:
        async def work(url: str) -> bytes:
            return await self.transport.read(name, params=self._params(), query=query, wire=Wire(url=url))

        return await self._roaming(work, True, MAX_DETOURS)

    @asynccontextmanager
    async def open(
        self,
        name: str,
        *,
        params: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        wire: Wire = Wire(),
        accept: str | None = None,
        repeatable: bool = True,
    ) -> AsyncIterator[httpx.Response]:
        """An answer to read piece by piece. A connection that breaks in its middle is an error."""

        async def work(url: str) -> Any:
            opening = self.transport.open(
                name,
                params=self._params(params),
                query=query,
                body=body,
                wire=dataclasses.replace(wire, url=url),
                accept=accept,
            )
            return opening, await opening.__aenter__()

        opening, response = await self._roaming(work, repeatable, MAX_DETOURS)
        try:
            yield response
        except BaseException as error:
            if not await opening.__aexit__(type(error), error, error.__traceback__):
                raise
        else:
            await opening.__aexit__(None, None, None)

    @asynccontextmanager
    async def putting_down(self) -> AsyncIterator[None]:
        """Marks the sandbox as paused by this client during and after the block."""
        before, self.is_put_down = self.is_put_down, True
        try:
            yield
        except BaseException:
            self.is_put_down = before
            raise

    async def resume(self, checkpoint: str | None = None, wire: Wire = Wire()) -> Any:
        """Resumes it on the client's own server. Waits for a save or restore in progress."""
        body = {} if checkpoint is None else {"checkpoint": checkpoint}
        failures = 0
        while True:
            try:
                record = await self.transport.call("resumeSandbox", params=self._params(), body=body, wire=wire)
                self.url = self.transport.url
                self.is_put_down = False
                return record
            except SandboxerError as error:
                failures += 1
                if failures > MAX_DETOURS or not _is_passing(error):
                    raise
                await asyncio.sleep(self._waits.delay(failures))

    async def recover(self, error: BaseException, failures: int = 1) -> bool:
        """Handles an error so that the call can be repeated; false if that is not possible."""
        if not isinstance(error, SandboxerError):
            return False
        relayed = self.transport.relay or error.code != "lease_held"
        if relayed and _is_of_owner(error):
            return await self._through_relay(error, failures)
        if error.code == "lease_held":
            return await self._to_owner(error)
        away = self.url != self.transport.url
        if away and is_code(error, "server_unreachable", "starting", "draining", "unauthorized", "sandbox_not_found"):
            self.url = self.transport.url
            return True
        if error.code == "lease_lost" and failures < 5:
            self.url = self.transport.url
            await asyncio.sleep(self._waits.delay(failures))
            return True
        if error.code == "wrong_state" and error.details.get("state") == "stored":
            return await self._wake()
        if not _is_passing(error):
            return False
        await asyncio.sleep(self._waits.delay(failures))
        return True

    async def _roaming(self, work: Callable[[str], Awaitable[Result]], repeatable: bool, detours: int) -> Result:
        failures = 0
        while True:
            try:
                return await work(self.url)
            except SandboxerError as error:
                failures += 1
                uncertain = is_code(error, "server_unreachable", "timeout") and not never_sent(error)
                if failures > detours or (uncertain and not repeatable) or not await self.recover(error, failures):
                    raise

    async def _to_owner(self, error: SandboxerError) -> bool:
        owner = error.details.get("url")
        if self._follow_owner and isinstance(owner, str) and owner != self.url and await self._answers(owner):
            self.url = owner
            return True
        # Unreachable from here: the client's own server requests it.
        return await self._wake()

    async def _through_relay(self, error: SandboxerError, failures: int) -> bool:
        """The server could not relay the call, or only to an earlier owner."""
        if error.code != "lease_held" or not isinstance(error.details.get("url"), str) or failures >= 5:
            # It cannot be reached there, so it is requested.
            return await self._wake()
        await asyncio.sleep(self._waits.delay(failures))
        return True

    async def _wake(self) -> bool:
        if not self._auto_resume:
            return False
        if self._resuming is None or self._resuming.done():
            self._resuming = asyncio.create_task(self.resume())
        # Others may wait for the same resume.
        await asyncio.shield(self._resuming)
        return True

    async def _answers(self, owner: str) -> bool:
        """Whether a server named by another one can be reached and trusted with the key."""
        scheme = urlsplit(owner).scheme
        if scheme not in ("http", "https") or (self.transport.url.startswith("https:") and scheme != "https"):
            return False
        look = self.transport.call("getSandbox", params=self._params(), wire=Wire(url=owner, attempts=1))
        try:
            await asyncio.wait_for(look, OWNER_SECONDS)
            return True
        except (SandboxerError, asyncio.TimeoutError):
            return False

    def _params(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        return {"id": self.sandbox_id, **(more or {})}


def _is_of_owner(error: SandboxerError) -> bool:
    """A relaying server's facts about the server that runs the sandbox."""
    if error.code == "lease_held":
        return True
    return is_code(error, "server_unreachable", "permission_denied") and isinstance(error.details.get("owner"), str)


def _is_passing(error: SandboxerError) -> bool:
    return error.code == "wrong_state" and error.details.get("state") in PASSING_STATES
