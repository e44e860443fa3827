"""Sandboxes that you can pause on one machine and resume on another.

``Sandbox`` is for programs without asyncio, ``AsyncSandbox`` for those with it; both have the same methods::

    from sandboxer import Sandbox

    with Sandbox.create() as sandbox:
        print(sandbox.exec("echo hello").stdout)

Errors are ``SandboxerError``: programs test ``code``, and ``hint`` says what to do.
"""

from . import models
from ._client import AsyncSandboxer
from ._compare import ComparedSandbox, Comparison
from ._files import AsyncSandboxFiles
from ._folders import UnpackResult
from ._images import AsyncImages
from ._interpreter import (
    AsyncInterpreter,
    CellEnd,
    CellError,
    CellEvent,
    CellExecution,
    CellStarted,
    CellText,
    CellValue,
)
from ._options import Bytes, Code, Command, ConnectionState, Language, Stream
from ._ports import AsyncForwardedPort
from ._process import AsyncSandboxProcess, Detached, ExecResult, OutputLine
from ._process_link import ExitStatus
from ._process_queues import OutputChunk
from ._retry import Retry
from ._sandbox import AsyncSandbox
from ._session import AsyncSandboxSession, Closed, ExecutionResult, SessionOutput
from ._snapshots import AsyncSnapshots
from ._sync import (
    ForwardedPort,
    Images,
    Interpreter,
    Sandbox,
    Sandboxer,
    SandboxFiles,
    SandboxProcess,
    SandboxSession,
    Snapshots,
)
from ._version import __version__
from .errors import (
    AuthenticationError,
    ConflictError,
    InvalidRequestError,
    LimitError,
    NotFoundError,
    NotSupportedError,
    PermissionDeniedError,
    SandboxerError,
    UnavailableError,
    UnreachableError,
)

__all__ = [
    "AsyncForwardedPort",
    "AsyncImages",
    "AsyncInterpreter",
    "AsyncSandbox",
    "AsyncSandboxFiles",
    "AsyncSandboxProcess",
    "AsyncSandboxSession",
    "AsyncSandboxer",
    "AsyncSnapshots",
    "AuthenticationError",
    "Bytes",
    "CellEnd",
    "CellError",
    "CellEvent",
    "CellExecution",
    "CellStarted",
    "CellText",
    "CellValue",
    "Closed",
    "Code",
    "Command",
    "ComparedSandbox",
    "Comparison",
    "ConflictError",
    "ConnectionState",
    "Detached",
    "ExecResult",
    "ExecutionResult",
    "ExitStatus",
    "ForwardedPort",
    "Images",
    "Interpreter",
    "InvalidRequestError",
    "Language",
    "LimitError",
    "NotFoundError",
    "NotSupportedError",
    "OutputChunk",
    "OutputLine",
    "PermissionDeniedError",
    "Retry",
    "Sandbox",
    "SandboxFiles",
    "SandboxProcess",
    "SandboxSession",
    "Sandboxer",
    "SandboxerError",
    "SessionOutput",
    "Snapshots",
    "Stream",
    "UnavailableError",
    "UnpackResult",
    "UnreachableError",
    "__version__",
    "models",
]
