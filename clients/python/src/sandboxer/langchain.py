"""Sandboxes for LangChain's Deep Agents::

    from deepagents import create_deep_agent
    from sandboxer import Sandbox
    from sandboxer.langchain import SandboxerBackend, checkpoint_tools

    backend = SandboxerBackend(Sandbox.acquire(key="thread-7"))
    agent = create_deep_agent(model="...", backend=backend, tools=checkpoint_tools(backend))

It needs ``pip install "sandboxer[langchain]"``, and Python 3.11 or newer.
"""

from __future__ import annotations

from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.sandbox import BaseSandbox
from langchain_core.tools import BaseTool, StructuredTool

from ._checkpoint_tools import blocking, checkpoint_functions
from ._exit_code import TIMED_OUT, exit_code_of
from ._process import MAX_OUTPUT_BYTES
from ._sync import Sandbox
from .errors import InvalidRequestError, SandboxerError, is_code

#: Seconds, as in LangChain's own backends.
DEFAULT_TIMEOUT = 30 * 60
#: Errors that a model can react to, by our code. Other failures end the run.
_FILE_ERRORS = {"file_not_found": "file_not_found", "permission_denied": "permission_denied"}


class SandboxerBackend(BaseSandbox):
    """A sandbox as the backend of a deep agent. The sandbox is kept when the agent ends: pause it, or delete it."""

    #: Checkpoints, snapshots, forks, rewinds, promotions.
    sandbox: Sandbox

    def __init__(
        self,
        sandbox: Sandbox,
        *,
        cwd: str | None = None,
        timeout: int = DEFAULT_TIMEOUT,
        max_output_bytes: int = MAX_OUTPUT_BYTES,
    ) -> None:
        """``cwd``: where commands run; default: the sandbox's working folder. ``timeout``: seconds for a command
        without its own timeout; 0: no limit."""
        self.sandbox = sandbox
        self._cwd = cwd
        self._timeout = timeout
        self._max_output_bytes = max_output_bytes

    @property
    def id(self) -> str:
        return self.sandbox.id

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Runs a shell line. Its output has both streams, in the order in which they were written."""
        seconds = self._timeout if timeout is None else timeout
        if seconds < 0:
            raise ValueError(f"timeout must not be negative: {seconds}")
        try:
            process = self.sandbox.spawn(command, cwd=self._cwd, stdin=b"", timeout=seconds or None)
        except InvalidRequestError as error:
            return ExecuteResponse(output=str(error), exit_code=1, truncated=False)
        kept, truncated = bytearray(), False
        for chunk in process.chunks():
            room = self._max_output_bytes - len(kept)
            kept += chunk.data[:room]
            truncated = truncated or len(chunk.data) > room
        code = exit_code_of(process.exit)
        if code == TIMED_OUT:
            kept += f"\nThe command was killed after {seconds} seconds.".encode()
        return ExecuteResponse(output=kept.decode(errors="replace"), exit_code=code, truncated=truncated)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return [FileUploadResponse(path=path, error=self._upload(path, content)) for path, content in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return [self._download(path) for path in paths]

    def _upload(self, path: str, content: bytes) -> str | None:
        try:
            self.sandbox.files.write(path, content)
            return None
        except SandboxerError as error:
            return self._reason(path, error)

    def _download(self, path: str) -> FileDownloadResponse:
        try:
            return FileDownloadResponse(path=path, content=self.sandbox.files.read(path), error=None)
        except SandboxerError as error:
            return FileDownloadResponse(path=path, content=None, error=self._reason(path, error))

    def _reason(self, path: str, error: SandboxerError) -> str:
        if is_code(error, *_FILE_ERRORS):
            return _FILE_ERRORS[error.code]
        if not isinstance(error, InvalidRequestError):
            raise error
        return "is_directory" if self._is_folder(path) else "invalid_path"

    def _is_folder(self, path: str) -> bool:
        try:
            return self.sandbox.files.stat(path).kind == "folder"
        except SandboxerError:
            return False


def checkpoint_tools(backend: SandboxerBackend) -> list[BaseTool]:
    """Tools that let the agent save the state of its sandbox, and return to it: ``checkpoint``, ``history``,
    ``diff`` and ``rewind``."""
    functions = checkpoint_functions(lambda: backend.sandbox._async)
    return [StructuredTool.from_function(blocking(function)) for function in functions]
