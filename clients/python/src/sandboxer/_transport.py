"""The calls of the server's table of routes: URLs, keys, errors, retries."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
import ssl
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

import httpx
from websockets.asyncio.client import connect

from ._bytes import pieces, whole
from ._decode import decode
from ._retry import Retry, retrying
from ._tables import ROUTES, Route
from .errors import error_of_body, error_of_fields, failure, unreachable
from .models import OperationRecord

DEFAULT_URL = "http://127.0.0.1:8080"
#: How long one poll of an operation waits for its end, in seconds; progress is shown as often.
LOOK_SECONDS = 0.5
#: The library's debug lines have the headers, and with them the keys.
_LOGGER = logging.getLogger("sandboxer.websocket")
_LOGGER.setLevel(logging.INFO)
_KEY = re.compile(r"[0-9a-fA-F]{64}|[A-Za-z0-9+/]{43}=?|[A-Za-z0-9_-]{43}=?")


@dataclass(frozen=True)
class Wire:
    """How one call is made."""

    epoch: int | None = None
    idempotency_key: str | None = None
    on_progress: Callable[[OperationRecord], object] | None = None
    #: Another server of the same store.
    url: str | None = None
    #: The maximum number of attempts, if different from the client's.
    attempts: int | None = None


class Transport:
    """Connections to a server. One belongs to the event loop that uses it, and is opened again in another one."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        api_key: str | None = None,
        encryption_key: str | None = None,
        retry: Retry = Retry(),
        relay: bool = False,
        timeout: float = 300,
        ssl_context: ssl.SSLContext | None = None,
        proxy: str | None = None,
        http_transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.url = base_url(url)
        self.api_key = api_key
        self.retry = retry
        self.relay = relay
        self._encryption_key = None if encryption_key is None else checked_key(encryption_key)
        self._timeout = httpx.Timeout(timeout, connect=min(timeout, 10), pool=None)
        self._ssl = ssl_context
        self._proxy = proxy
        self._http_transport = http_transport
        self._opened: tuple[asyncio.AbstractEventLoop, httpx.AsyncClient] | None = None

    def __repr__(self) -> str:
        """Without the keys."""
        return f"Transport({self.url!r})"

    async def call(
        self,
        name: str,
        *,
        params: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        wire: Wire = Wire(),
    ) -> Any:
        """Calls a route whose answer is JSON, or empty. With ``on_progress`` the server answers at once with an
        operation, which is followed to its end."""

        async def read(response: httpx.Response) -> Any:
            content = await response.aread()
            return None if response.status_code == 204 else json.loads(content)

        status, answer = await self._request(name, params, query, body, wire, read)
        return await self._follow(answer, wire) if status == 202 else answer

    async def read(
        self, name: str, *, params: Mapping[str, str], query: Mapping[str, Any] | None = None, wire: Wire = Wire()
    ) -> bytes:
        """The bytes that a route answers with."""

        async def read(response: httpx.Response) -> bytes:
            return await response.aread()

        _, content = await self._request(name, params, query, None, wire, read)
        return content  # type: ignore[no-any-return]

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
    ) -> AsyncIterator[httpx.Response]:
        """An answer to read piece by piece."""
        _, response = await self._request(name, params, query, body, wire, None, accept)
        try:
            yield response
        except httpx.HTTPError as error:
            raise unreachable(_origin(str(response.url)), error or type(error).__name__, sent=True) from error
        finally:
            await response.aclose()

    def websocket(self, url: str, *, silence: float = 30, key: bool = True, own_key: bool = False) -> connect:
        """Opens a WebSocket; a peer that is silent for ``silence`` seconds is pinged, and given up after as many."""
        scheme, rest = url.split(":", 1)
        protocols = ["sandboxer.v1"]
        if key and self.api_key is not None:
            protocols.append(f"sandboxer.bearer.{_base64url(self.api_key.encode())}")
        if own_key and self._encryption_key is not None:
            protocols.append(f"sandboxer.encryption-key.{_base64url(_key_bytes(self._encryption_key))}")
        return connect(
            f"{scheme.lower().replace('http', 'ws')}:{rest}",
            subprotocols=protocols,  # type: ignore[arg-type]
            logger=_LOGGER,
            compression=None,
            max_size=None,
            ping_interval=silence,
            ping_timeout=silence,
            close_timeout=2,
            proxy=True if self._proxy is None else self._proxy,
            ssl=self.ssl_context() if scheme.lower() in ("https", "wss") else None,
        )

    def ssl_context(self) -> ssl.SSLContext:
        self._ssl = self._ssl or ssl.create_default_context()
        return self._ssl

    def key_headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        if self.api_key is not None:
            headers |= {"authorization": f"Bearer {self.api_key}", "sandboxer-key": self.api_key}
        if self._encryption_key is not None:
            headers["sandboxer-encryption-key"] = self._encryption_key
        return headers

    async def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None and opened[0] is asyncio.get_running_loop():
            await opened[1].aclose()

    async def _request(
        self,
        name: str,
        params: Mapping[str, str] | None,
        query: Mapping[str, Any] | None,
        body: Any,
        wire: Wire,
        use: Callable[[httpx.Response], Any] | None,
        accept: str | None = None,
    ) -> tuple[int, Any]:
        route = ROUTES[name]
        url = address(wire.url or self.url, route.path, params, query)
        headers = self._headers(route, wire, accept)
        one_shot = route.content_type is not None and whole(body) is None

        async def attempt(uncertain: int) -> tuple[int, Any]:
            request = self._client().build_request(
                route.method, url, headers=headers, **_content(route, body, one_shot)
            )
            response: httpx.Response = await self._reading(url, self._client().send(request, stream=True))
            keep = False
            try:
                # A 404 after an attempt with an unknown outcome means that the attempt removed it.
                if uncertain > 0 and route.method == "DELETE" and response.status_code in (404, 410):
                    return 204, None
                if not response.is_success:
                    text = (await self._reading(url, response.aread())).decode(errors="replace")
                    raise error_of_body(text, response.status_code, _retry_after(response))
                if use is None:
                    keep = True
                    return response.status_code, response
                return response.status_code, await self._reading(url, use(response))
            finally:
                if not keep:
                    await response.aclose()

        attempts = 1 if one_shot else wire.attempts or self.retry.attempts
        return await retrying(attempt, self.retry, attempts, route.repeatable and not one_shot)

    async def _reading(self, url: str, work: Any) -> Any:
        """A failure while an answer is awaited or read is a failure of the connection."""
        try:
            return await work
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise unreachable(_origin(url), error, sent=False) from error
        except httpx.HTTPError as error:
            raise unreachable(_origin(url), error or type(error).__name__, sent=True) from error
        except ValueError as error:
            hint = "Check that the URL is that of a sandboxer server."
            raise failure("internal", f"The response from {_origin(url)} is not JSON.", hint) from error

    async def _follow(self, operation: Any, wire: Wire) -> Any:
        """Polls an operation until it ends, and reports each poll. Returns the call's answer."""
        while True:
            if wire.on_progress is not None:
                wire.on_progress(decode(OperationRecord, operation))
            if operation["state"] == "failed":
                raise error_of_fields(operation.get("error") or {})
            if operation["state"] == "done":
                return operation.get("result")
            wait = 60 if wire.on_progress is None else LOOK_SECONDS
            params = {"id": operation["id"]}
            operation = await self.call("getOperation", params=params, query={"wait": wait}, wire=Wire(url=wire.url))

    def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._opened is None or self._opened[0] is not loop:
            client = httpx.AsyncClient(
                timeout=self._timeout,
                verify=self.ssl_context(),
                proxy=self._proxy,
                transport=self._http_transport,
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            )
            self._opened = (loop, client)
        return self._opened[1]

    def _headers(self, route: Route, wire: Wire, accept: str | None) -> dict[str, str]:
        headers = {"accept": accept or route.accept, **self.key_headers()}
        if route.content_type is not None:
            headers["content-type"] = route.content_type
        if wire.epoch is not None:
            headers["if-sandbox-epoch"] = str(wire.epoch)
        if route.idempotent:
            headers["idempotency-key"] = wire.idempotency_key or str(uuid.uuid4())
        if wire.on_progress is not None:
            headers["prefer"] = "respond-async"
        if self.relay:
            headers["sandboxer-relay"] = "allow"
        return headers


def base_url(text: str) -> str:
    parts = urlsplit(text)
    scheme = {"ws": "http", "wss": "https"}.get(parts.scheme.lower(), parts.scheme.lower())
    if scheme not in ("http", "https") or not parts.hostname:
        hint = "Use a URL such as http://127.0.0.1:8080."
        raise failure("bad_request", f'"{text}" is not the URL of a server.', hint)
    return urlunsplit((scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def address(
    base: str, path: str, params: Mapping[str, str] | None = None, query: Mapping[str, Any] | None = None
) -> str:
    """The URL of a call: the base may have its own path, behind a proxy."""
    filled = re.sub(r"\{(\w+)\}", lambda match: _segment(match[1], (params or {}).get(match[1])), path)
    pairs = [
        (name, str(one).lower() if isinstance(one, bool) else one)
        for name, value in (query or {}).items()
        if value is not None
        for one in (value if isinstance(value, (list, tuple)) else [value])
    ]
    return f"{base_url(base)}{filled}{'?' if pairs else ''}{urlencode(pairs)}"


def checked_key(text: str) -> str:
    """An invalid key is not sent: it may be another secret."""
    if _KEY.fullmatch(text.strip()):
        return text.strip()
    hint = "Create one with `openssl rand -base64 32` and keep it: the server does not store it."
    raise failure("bad_request", "An encryption key is 32 bytes, in base64 or hex.", hint)


def _segment(name: str, value: Any) -> str:
    # An empty segment, or a dot, would be another path.
    if isinstance(value, str) and value not in ("", ".", ".."):
        return quote(value, safe="")
    raise failure("bad_request", f'"{value}" is not a valid {name} for a request.')


def _content(route: Route, body: Any, one_shot: bool) -> dict[str, Any]:
    if body is None:
        return {}
    if route.content_type is None:
        return {"json": body}
    return {"content": pieces(body) if one_shot else whole(body)}


def _retry_after(response: httpx.Response) -> dict[str, Any]:
    text = response.headers.get("retry-after", "")
    return {"retry_after_seconds": int(text)} if text.isdigit() else {}


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _key_bytes(key: str) -> bytes:
    if len(key) == 64:
        return bytes.fromhex(key)
    return base64.urlsafe_b64decode(key.rstrip("=").replace("+", "-").replace("/", "_") + "=")
