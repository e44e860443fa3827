"""Sandboxes for the OpenAI Agents SDK. It needs ``pip install "sandboxer[openai-agents]"``::

    from agents import RunConfig, Runner
    from agents.sandbox import SandboxAgent, SandboxRunConfig
    from sandboxer.openai_agents import Checkpoints, SandboxerClient

    agent = SandboxAgent(name="fixer", instructions="...", capabilities=[*Capabilities.default(), Checkpoints()])
    config = RunConfig(sandbox=SandboxRunConfig(client=SandboxerClient(url="http://127.0.0.1:8080")))
    await Runner.run(agent, "Fix the tests.", run_config=config)

A workspace is persisted as a snapshot of the whole sandbox: files, memory and running programs.
"""

from __future__ import annotations

import io
import json
import tarfile
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import urlsplit

from agents import Tool, function_tool
from agents.sandbox.capabilities import Capability
from agents.sandbox.errors import (
    ExecNonZeroError,
    ExecTimeoutError,
    ExecTransportError,
    ExposedPortUnavailableError,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
    WorkspaceStartError,
    WorkspaceWriteTypeError,
)
from agents.sandbox.manifest import Manifest
from agents.sandbox.session import BaseSandboxSession, SandboxSession, SandboxSessionState
from agents.sandbox.session.dependencies import Dependencies
from agents.sandbox.session.manager import Instrumentation
from agents.sandbox.session.pty_types import PtyExecUpdate
from agents.sandbox.session.runtime_helpers import RESOLVE_WORKSPACE_PATH_HELPER, RuntimeHelperScript
from agents.sandbox.session.sandbox_client import BaseSandboxClient, BaseSandboxClientOptions
from agents.sandbox.snapshot import SnapshotBase, SnapshotSpec, resolve_snapshot
from agents.sandbox.types import ExecResult, ExposedPortEndpoint, User
from agents.sandbox.util.tar_utils import validate_tarfile
from agents.sandbox.workspace_paths import sandbox_path_str
from pydantic import Field

from ._checkpoint_tools import checkpoint_functions
from ._client import AsyncSandboxer
from ._exit_code import exit_code_of
from ._openai_terminals import Terminals
from ._options import ConnectionOptions
from ._process import MAX_OUTPUT_BYTES
from ._sandbox import AsyncSandbox
from .errors import NotFoundError, SandboxerError, is_code

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: The prefix of a workspace that references a snapshot on the server. Others are tar archives.
_REFERENCE = b"SANDBOXER_SNAPSHOT_V1\n"
_SESSION_LABEL = "openai-agents-session"


class SandboxerClientOptions(BaseSandboxClientOptions):
    type: Literal["sandboxer"] = "sandboxer"
    #: Settings of sandboxes, as in ``Sandbox.create``: ``image``, ``env``, ``network``, ``resources``, ``max_loss``.
    settings: dict[str, Any] = Field(default_factory=dict)
    #: At the end of a session, pause the sandbox instead of deleting it. ``resume`` finds it with its programs.
    pause_on_exit: bool = False
    exposed_ports: tuple[int, ...] = ()


class SandboxerSessionState(SandboxSessionState):
    type: Literal["sandboxer"] = "sandboxer"
    sandbox_id: str
    settings: dict[str, Any] = Field(default_factory=dict)
    pause_on_exit: bool = False


class SandboxerSession(BaseSandboxSession):
    """A session in a sandbox."""

    state: SandboxerSessionState
    #: Checkpoints, snapshots, forks, rewinds, promotions.
    sandbox: AsyncSandbox

    def __init__(self, state: SandboxerSessionState, sandbox: AsyncSandbox) -> None:
        self.state = state
        self.sandbox = sandbox
        self._has_root = state.workspace_root_ready
        self._terminals = Terminals()

    async def running(self) -> bool:
        try:
            return self._has_root and (await self.sandbox.refresh()).state == "running"
        except SandboxerError:
            return False

    async def read(self, path: Path, *, user: str | User | None = None) -> io.IOBase:
        if user is not None:
            await self._check_read_with_exec(path, user=user)
        return io.BytesIO(await self._read(path))

    async def _read_bounded(self, path: Path, *, max_bytes: int) -> bytes:
        return await self._read(path, max_bytes)

    async def _read(self, path: Path, length: int | None = None) -> bytes:
        inside = sandbox_path_str(await self._validate_path_access(path))
        try:
            return await self.sandbox.files.read(inside, length=length)
        except SandboxerError as error:
            if is_code(error, "file_not_found"):
                raise WorkspaceReadNotFoundError(path=path, cause=error) from error
            raise WorkspaceArchiveReadError(path=path, cause=error, retryable=error.retryable) from error

    async def write(self, path: Path, data: io.IOBase, *, user: str | User | None = None) -> None:
        if user is not None:
            await self._check_write_with_exec(path, user=user)
        content = _bytes_of(data, path)
        inside = await self._validate_path_access(path, for_write=True)
        try:
            await self.sandbox.files.write(sandbox_path_str(inside), content)
        except SandboxerError as error:
            raise WorkspaceArchiveWriteError(path=inside, cause=error, retryable=error.retryable) from error

    async def _exec_internal(self, *command: str | Path, timeout: float | None = None) -> ExecResult:
        argv, user = _without_sudo([str(part) for part in command])
        try:
            process = await self.sandbox.spawn(argv, user=user, stdin=b"", timeout=timeout, **await self._place())
            output = {"stdout": bytearray(), "stderr": bytearray()}
            async for chunk in process.chunks():
                kept = output[chunk.stream]
                kept += chunk.data[: MAX_OUTPUT_BYTES - len(kept)]
        except SandboxerError as error:
            raise ExecTransportError(command=command, cause=error, retryable=error.retryable) from error
        if process.exit is not None and process.exit.timed_out:
            raise ExecTimeoutError(command=command, timeout_s=timeout)
        code = exit_code_of(process.exit)
        return ExecResult(stdout=bytes(output["stdout"]), stderr=bytes(output["stderr"]), exit_code=code)

    async def _place(self) -> dict[str, Any]:
        """Where a command runs, and its environment."""
        cwd = self.state.manifest.root if self._has_root else None
        return {"cwd": cwd, "env": await self.state.manifest.environment.resolve()}

    def supports_pty(self) -> bool:
        return True

    async def pty_exec_start(
        self,
        *command: str | Path,
        timeout: float | None = None,
        shell: bool | list[str] = True,
        user: str | User | None = None,
        tty: bool = False,
        yield_time_s: float | None = None,
        max_output_tokens: int | None = None,
    ) -> PtyExecUpdate:
        argv, name = _without_sudo(self._prepare_exec_command(*command, shell=shell, user=user))
        options = {"user": name, "timeout": timeout, **await self._place()}
        try:
            process = await (self.sandbox.pty(argv, **options) if tty else self.sandbox.spawn(argv, **options))
        except SandboxerError as error:
            raise ExecTransportError(command=command, cause=error, retryable=error.retryable) from error
        return await self._terminals.begin(process, yield_time_s, max_output_tokens)

    async def pty_write_stdin(
        self,
        *,
        session_id: int,
        chars: str,
        yield_time_s: float | None = None,
        max_output_tokens: int | None = None,
    ) -> PtyExecUpdate:
        return await self._terminals.write(session_id, chars, yield_time_s, max_output_tokens)

    async def pty_terminate_all(self) -> None:
        await self._terminals.end_all()

    async def persist_workspace(self) -> io.IOBase:
        """A reference to a snapshot of the whole sandbox; a tar archive if parts of the workspace must not be kept."""
        skipped = sorted(path.as_posix() for path in self._persist_workspace_skip_relpaths())
        if skipped:
            return await self._pack(skipped)
        try:
            labels = {_SESSION_LABEL: str(self.state.session_id)}
            snapshot = await self.sandbox.snapshot(labels=labels)
        except SandboxerError as error:
            raise WorkspaceArchiveReadError(path=self._workspace_root_path(), cause=error) from error
        return io.BytesIO(_REFERENCE + json.dumps({"snapshot_id": snapshot.id}).encode())

    async def hydrate_workspace(self, data: io.IOBase) -> None:
        root = self._workspace_root_path()
        content = _bytes_of(data, root)
        try:
            if content.startswith(_REFERENCE):
                await self._return_to(json.loads(content[len(_REFERENCE) :])["snapshot_id"])
                return
            with tarfile.open(fileobj=io.BytesIO(content)) as archive:
                validate_tarfile(archive, allow_external_symlink_targets=False)
            await self.sandbox.files.upload_tar(root.as_posix(), content)
        except (SandboxerError, ValueError, KeyError, tarfile.TarError) as error:
            raise WorkspaceArchiveWriteError(path=root, cause=error) from error

    async def _pack(self, skipped: list[str]) -> io.IOBase:
        root = self._workspace_root_path()
        command = [
            "tar",
            "-C",
            root.as_posix(),
            "--no-wildcards",
            *(f"--exclude=./{path}" for path in skipped),
            "-c",
            ".",
        ]
        try:
            process = await self.sandbox.spawn(command, stdin=b"")
            archive, said = io.BytesIO(), bytearray()
            async for chunk in process.chunks():
                if chunk.stream == "stdout":
                    archive.write(chunk.data)
                else:
                    said += chunk.data
        except SandboxerError as error:
            raise WorkspaceArchiveReadError(path=root, cause=error) from error
        code = exit_code_of(process.exit)
        if code != 0:
            failed = ExecNonZeroError(ExecResult(stdout=b"", stderr=bytes(said), exit_code=code), command=command)
            raise WorkspaceArchiveReadError(path=root, cause=failed)
        archive.seek(0)
        return archive

    async def _return_to(self, snapshot_id: str) -> None:
        """Its own snapshot: a rewind in place. One of another sandbox: a new sandbox takes the place of this one."""
        client = self.sandbox.client
        if (await client.snapshots.get(snapshot_id)).sandbox_id == self.sandbox.id:
            await self.sandbox.rewind(snapshot_id)
            return
        restored = await AsyncSandbox.restore(snapshot_id, client=client)
        await _destroy(self.sandbox)
        self.sandbox = restored
        self.state.sandbox_id = restored.id

    async def _prepare_backend_workspace(self) -> None:
        root = self._workspace_root_path()
        try:
            await self.sandbox.files.mkdir(root.as_posix())
        except SandboxerError as error:
            raise WorkspaceStartError(path=root, cause=error) from error
        self._has_root = True

    async def _validate_path_access(self, path: Path | str, *, for_write: bool = False) -> Path:
        return await self._validate_remote_path_access(path, for_write=for_write)

    def _runtime_helpers(self) -> tuple[RuntimeHelperScript, ...]:
        return (RESOLVE_WORKSPACE_PATH_HELPER,)

    def _current_runtime_helper_cache_key(self) -> object | None:
        return self.state.sandbox_id

    async def _resolve_exposed_port(self, port: int) -> ExposedPortEndpoint:
        try:
            url = urlsplit((await self.sandbox.port_url(port)).url)
        except SandboxerError as error:
            raise ExposedPortUnavailableError(
                port=port, exposed_ports=self.state.exposed_ports, reason="backend_unavailable", cause=error
            ) from error
        tls = url.scheme == "https"
        number = url.port or (443 if tls else 80)
        return ExposedPortEndpoint(host=url.hostname or "", port=number, tls=tls, query=url.query)

    async def _shutdown_backend(self) -> None:
        if not self.state.pause_on_exit:
            await _destroy(self.sandbox)
        elif (await self.sandbox.refresh()).state not in ("stored", "destroyed"):
            await self.sandbox.checkpoint()


class SandboxerClient(BaseSandboxClient[SandboxerClientOptions | None]):
    """Creates sessions in sandboxes on a server."""

    backend_id = "sandboxer"
    supports_default_options = True
    #: The SDK's client.
    sandboxer: AsyncSandboxer

    def __init__(
        self,
        *,
        client: AsyncSandboxer | None = None,
        instrumentation: Instrumentation | None = None,
        dependencies: Dependencies | None = None,
        **connection: Unpack[ConnectionOptions],
    ) -> None:
        self.sandboxer = client or AsyncSandboxer(**connection)
        self._instrumentation = instrumentation or Instrumentation()
        self._dependencies = dependencies

    async def create(
        self,
        *,
        snapshot: SnapshotSpec | SnapshotBase | None = None,
        manifest: Manifest | None = None,
        options: SandboxerClientOptions | None = None,
    ) -> SandboxSession:
        chosen = options or SandboxerClientOptions()
        wanted = self._validate_manifest_for_create(manifest or Manifest())
        session_id = uuid.uuid4()
        sandbox = await self._new_sandbox(session_id, chosen.settings)
        state = SandboxerSessionState(
            session_id=session_id,
            manifest=wanted,
            snapshot=resolve_snapshot(snapshot, str(session_id)),
            sandbox_id=sandbox.id,
            settings=chosen.settings,
            pause_on_exit=chosen.pause_on_exit,
            exposed_ports=chosen.exposed_ports,
        )
        return self._wrap_session(SandboxerSession(state, sandbox), instrumentation=self._instrumentation)

    async def resume(self, state: SandboxSessionState) -> SandboxSession:
        """Finds the sandbox, on whichever server it is. If it was deleted, a new one is created from the state's
        snapshot."""
        if not isinstance(state, SandboxerSessionState):
            raise TypeError("SandboxerClient.resume expects a SandboxerSessionState.")
        state.assert_path_grants_rebound()
        sandbox = await self._find(state.sandbox_id)
        found = sandbox is not None
        if sandbox is None:
            sandbox = await self._new_sandbox(state.session_id, state.settings)
            state.sandbox_id = sandbox.id
            state.workspace_root_ready = False
        inner = SandboxerSession(state, sandbox)
        inner._set_start_state_preserved(found)
        return self._wrap_session(inner, instrumentation=self._instrumentation)

    async def delete(self, session: SandboxSession) -> SandboxSession:
        """Deletes the sandbox, unless the session pauses it on exit: the framework calls this after every run."""
        inner = inner_session(session)
        if not inner.state.pause_on_exit:
            await _destroy(inner.sandbox)
        return session

    def deserialize_session_state(self, payload: dict[str, object]) -> SandboxSessionState:
        return self._deserialize_session_state_payload(payload, SandboxerSessionState)

    async def _new_sandbox(self, session_id: uuid.UUID, settings: dict[str, Any]) -> AsyncSandbox:
        labels = {**settings.get("labels", {}), _SESSION_LABEL: str(session_id)}
        return await AsyncSandbox.create(client=self.sandboxer, **cast("Any", {**settings, "labels": labels}))

    async def _find(self, sandbox_id: str) -> AsyncSandbox | None:
        try:
            sandbox = await AsyncSandbox.attach(sandbox_id, client=self.sandboxer)
            if sandbox.record.state == "destroyed":
                return None
            await sandbox.resume()
            return sandbox
        except NotFoundError:
            return None


class Checkpoints(Capability):
    """Tools that let the agent save the state of its sandbox, and return to it: ``checkpoint``, ``history``,
    ``diff`` and ``rewind``."""

    type: Literal["checkpoints"] = "checkpoints"

    def tools(self) -> list[Tool]:
        if self.session is None:
            raise ValueError("The capability Checkpoints is not bound to a session.")
        inner = inner_session(self.session)
        return [function_tool(function) for function in checkpoint_functions(lambda: inner.sandbox)]

    async def instructions(self, manifest: Manifest) -> str | None:
        return "Take a checkpoint before anything risky. If it fails, rewind to the checkpoint instead of repairing."


def sandbox_of(session: BaseSandboxSession) -> AsyncSandbox:
    """The SDK's handle of a session: checkpoints, snapshots, forks, rewinds, promotions."""
    return inner_session(session).sandbox


def inner_session(session: BaseSandboxSession) -> SandboxerSession:
    inner = session._inner if isinstance(session, SandboxSession) else session
    if not isinstance(inner, SandboxerSession):
        raise TypeError("This is not a session of a SandboxerClient.")
    return inner


async def _destroy(sandbox: AsyncSandbox) -> None:
    with suppress(NotFoundError):
        await sandbox.destroy()


def _without_sudo(argv: list[str]) -> tuple[list[str], str | None]:
    """The framework writes users as ``sudo -u USER --``. The server changes the user itself."""
    if argv[:2] == ["sudo", "-u"] and argv[3:4] == ["--"]:
        return argv[4:], argv[2]
    return argv, None


def _bytes_of(data: io.IOBase, path: Path) -> bytes:
    content = data.read()
    if isinstance(content, str):
        return content.encode()
    if not isinstance(content, bytes | bytearray):
        raise WorkspaceWriteTypeError(path=path, actual_type=type(content).__name__)
    return bytes(content)
