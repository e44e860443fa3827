"""Folders of this machine as tar archives."""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from ._options import Path
from .errors import SandboxerError, failure


@dataclass(frozen=True)
class UnpackResult:
    #: Files and links.
    files: int
    bytes: int


def pack_folder(folder: Path, archive: IO[bytes], filter: Callable[[str], bool] | None = None) -> None:
    """Writes files, folders and symbolic links, by name. Sockets, pipes and devices are left out. ``filter`` gets paths
    relative to the folder, with ``/``."""
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        _pack_below(tar, os.fspath(folder), "", filter or (lambda path: True))


def _pack_below(tar: tarfile.TarFile, folder: str, below: str, wanted: Callable[[str], bool]) -> None:
    for name in sorted(os.listdir(os.path.join(folder, below))):
        path = f"{below}/{name}" if below else name
        if not wanted(path):
            continue
        local = os.path.join(folder, path)
        mode = os.lstat(local).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
            continue
        tar.add(local, path, recursive=False, filter=_anonymous)
        if stat.S_ISDIR(mode):
            _pack_below(tar, folder, path, wanted)


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def unpack_folder(archive: IO[bytes], folder: Path) -> UnpackResult:
    """Unpacks a tar archive from a sandbox, which may be hostile: nothing is written outside the folder, no link is
    followed, and entries other than files, folders and symbolic links are refused. Existing files are replaced."""
    root = os.fspath(folder)
    os.makedirs(root, exist_ok=True)
    # Folders get their times and modes at the end: unpacking into them changes their times, and needs write access.
    folders: list[tuple[list[str], tarfile.TarInfo]] = []
    files = size = 0
    try:
        with tarfile.open(fileobj=archive, mode="r:") as tar:
            for entry in tar:
                parts = _safe_parts(entry)
                if not parts:
                    continue
                _unpack_entry(tar, entry, root, parts)
                if entry.isdir():
                    folders.append((parts, entry))
                else:
                    files, size = files + 1, size + (entry.size if entry.isreg() else 0)
    except tarfile.TarError as error:
        raise failure("bad_request", f"This is not a valid tar archive: {error}.") from error
    for parts, entry in reversed(folders):
        # A later entry may have put a link in its place.
        if _is_real_folder(root, parts):
            path = os.path.join(root, *parts)
            os.chmod(path, entry.mode & 0o777)
            os.utime(path, (entry.mtime, entry.mtime))
    return UnpackResult(files, size)


def _unpack_entry(tar: tarfile.TarFile, entry: tarfile.TarInfo, root: str, parts: list[str]) -> None:
    path = os.path.join(root, *parts)
    _real_folder(root, parts if entry.isdir() else parts[:-1])
    if entry.isdir():
        return
    if not (entry.isreg() or entry.issym()):
        raise _refused(entry.name, "it is not a file, folder or symbolic link")
    _remove(path)
    if entry.issym():
        return os.symlink(entry.linkname, path)
    contents = tar.extractfile(entry)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    with os.fdopen(descriptor, "wb") as file:
        if contents is not None:
            shutil.copyfileobj(contents, file)
    # Setuid and setgid bits are dropped.
    os.chmod(path, entry.mode & 0o777)
    os.utime(path, (entry.mtime, entry.mtime))


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _real_folder(root: str, parts: list[str]) -> None:
    """Creates the folders of a path, and ensures that none of them is a link."""
    path = root
    for part in parts:
        path = os.path.join(path, part)
        if os.path.islink(path):
            raise _refused(path, "a link is in its way")
        if not os.path.isdir(path):
            _remove(path)
            os.mkdir(path)


def _is_real_folder(root: str, parts: list[str]) -> bool:
    paths = [os.path.join(root, *parts[: count + 1]) for count in range(len(parts))]
    return all(os.path.isdir(path) and not os.path.islink(path) for path in paths)


def _safe_parts(entry: tarfile.TarInfo) -> list[str]:
    parts = [part for part in entry.name.split("/") if part not in ("", ".")]
    if entry.name.startswith("/") or "\0" in entry.name or ".." in parts:
        raise _refused(entry.name, "its path leads outside the folder")
    return parts


def _refused(name: str, why: str) -> SandboxerError:
    return failure(
        "permission_denied",
        f'"{name}" of the tar was not unpacked: {why}.',
        "Entries before it were unpacked. The sandbox may be trying to write outside the folder.",
    )
