"""The errors of the SDK. Programs test ``code`` or catch a subclass; ``hint`` tells people what to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ._tables import ERRORS


class SandboxerError(Exception):
    """Every failure of the SDK. The codes are in docs/reference/errors.md."""

    code: str
    message: str
    hint: str
    #: The HTTP status of the code.
    status: int
    details: Mapping[str, Any]

    def __init__(
        self,
        code: str,
        message: str,
        hint: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        # All arguments, so that an error can be pickled.
        super().__init__(code, message, hint, details)
        self.code = code
        self.message = message
        self.hint = hint or ERRORS[code].hint
        self.status = ERRORS[code].status
        self.details = details or {}

    @property
    def retryable(self) -> bool:
        """Whether the same call can succeed later."""
        return ERRORS[self.code].retryable

    def __str__(self) -> str:
        return f"{self.message} ({self.code}) {self.hint}"


class InvalidRequestError(SandboxerError):
    """The request is wrong or too large (400, 413)."""


class AuthenticationError(SandboxerError):
    """The server requires a key, or rejects this one (401)."""


class PermissionDeniedError(SandboxerError):
    """The key or the token does not allow this (403)."""


class NotFoundError(SandboxerError):
    """There is no such sandbox, snapshot, process, file or image, or it was deleted (404, 410)."""


class ConflictError(SandboxerError):
    """The sandbox is in another state, in use, or at another epoch (409, 412)."""


class NotSupportedError(SandboxerError):
    """The backend or the server cannot do this (422)."""


class LimitError(SandboxerError):
    """A limit of the server was reached, or calls came too fast (429)."""


class UnavailableError(SandboxerError):
    """The server, its store or its backend is not available now (503)."""


class UnreachableError(UnavailableError):
    """No server answered, or the connection broke."""


_CLASS_OF_STATUS: dict[int, type[SandboxerError]] = {
    400: InvalidRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    410: NotFoundError,
    412: ConflictError,
    413: InvalidRequestError,
    422: NotSupportedError,
    429: LimitError,
    503: UnavailableError,
}

#: The code for an unknown error of a newer server, by its status.
_CODE_OF_STATUS = {
    401: "unauthorized",
    403: "permission_denied",
    404: "not_found",
    413: "too_large",
    422: "not_supported",
    429: "rate_limited",
    502: "server_unreachable",
    503: "backend_unavailable",
    504: "server_unreachable",
}


def failure(
    code: str, message: str, hint: str | None = None, details: Mapping[str, Any] | None = None
) -> SandboxerError:
    """An error of the class that belongs to its code."""
    kind = UnreachableError if code == "server_unreachable" else _CLASS_OF_STATUS.get(ERRORS[code].status)
    return (kind or SandboxerError)(code, message, hint, details)


def error_of_body(text: str, status: int, more: Mapping[str, Any] | None = None) -> SandboxerError:
    """An error from the body of an unsuccessful response."""
    try:
        fields = json.loads(text)["error"]
        if isinstance(fields, dict):
            return error_of_fields(fields, status, more)
    except (ValueError, KeyError, TypeError):
        pass
    shown = f": {text[:200]}" if text else ""
    return failure(
        _code_of_status(status),
        f"The server answered with {status}{shown}",
        "Check that the URL is that of a sandboxer server and not of a proxy in front of it.",
        {**(more or {}), "status": status},
    )


def error_of_fields(
    fields: Mapping[str, Any], status: int = 500, more: Mapping[str, Any] | None = None
) -> SandboxerError:
    """An error from a response body, an operation or an event of the server."""
    code, message, hint, details = (fields.get(name) for name in ("code", "message", "hint", "details"))
    known = code if isinstance(code, str) and code in ERRORS else _code_of_status(status)
    return failure(
        known,
        message if isinstance(message, str) else f"The server answered with {status}.",
        hint if isinstance(hint, str) else None,
        {
            **({} if known == code else {"code": code}),
            **(more or {}),
            **(details if isinstance(details, dict) else {}),
        },
    )


def unreachable(origin: str, reason: object, *, sent: bool) -> SandboxerError:
    """There was no response. With ``sent`` false the request cannot have reached the server."""
    why = f" ({reason})" if str(reason) else ""
    return failure(
        "server_unreachable",
        f"No answer from {origin}{why}.",
        "Check the URL and that a server runs there. `sandboxer serve` starts one.",
        {"url": origin, **({} if sent else {"reached": False})},
    )


def is_code(error: BaseException | None, *codes: str) -> bool:
    return isinstance(error, SandboxerError) and error.code in codes


def never_sent(error: SandboxerError) -> bool:
    """Whether the request cannot have reached its server, so that repeating it is safe."""
    return error.details.get("reached") is False


def _code_of_status(status: int) -> str:
    return _CODE_OF_STATUS.get(status, "bad_request" if 400 <= status < 500 else "internal")
