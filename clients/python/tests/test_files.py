"""Files and folders, and archives of hostile sandboxes."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from sandboxer import NotFoundError, PermissionDeniedError, Sandbox
from sandboxer._folders import pack_folder, unpack_folder


def test_files_are_written_read_renamed_and_removed(sandbox: Sandbox) -> None:
    files = sandbox.files
    files.write("/tmp/data/note.txt", "hello", mode=0o600)
    assert files.read("/tmp/data/note.txt") == b"hello"
    assert files.read_text("/tmp/data/note.txt", offset=1, length=3) == "ell"
    assert b"".join(files.read_stream("/tmp/data/note.txt")) == b"hello"
    assert [(entry.name, entry.mode & 0o777) for entry in files.list("/tmp/data")] == [("note.txt", 0o600)]
    files.rename("/tmp/data/note.txt", "/tmp/data/other.txt")
    assert files.stat("/tmp/data/other.txt").size_bytes == 5
    files.mkdir("/tmp/data/a/b")
    files.write("/tmp/data/stream", iter([b"one", b"two"]))
    assert files.read("/tmp/data/stream") == b"onetwo"
    files.remove("/tmp/data", recursive=True)
    assert not files.exists("/tmp/data")
    with pytest.raises(NotFoundError) as missing:
        files.read("/tmp/data")
    assert missing.value.code == "file_not_found"


def test_folders_are_uploaded_and_downloaded(sandbox: Sandbox, tmp_path: Path) -> None:
    local = tmp_path / "project"
    (local / "src").mkdir(parents=True)
    (local / "src" / "in.txt").write_text("input")
    (local / "src" / "run").write_text("#!/bin/sh")
    (local / "src" / "run").chmod(0o755)
    (local / "link").symlink_to("/nowhere/outside")
    (local / "left-out").mkdir()
    (local / "left-out" / "large").write_text("x")
    result = sandbox.files.upload_folder(local, "/tmp/project", filter=lambda path: path != "left-out")
    assert result.files == 3
    back = sandbox.files.download_folder("/tmp/project", tmp_path / "back")
    assert back.files == 3
    assert (tmp_path / "back/src/in.txt").read_text() == "input"
    assert (tmp_path / "back/src/run").stat().st_mode & 0o777 == 0o755
    assert os.readlink(tmp_path / "back/link") == "/nowhere/outside"
    assert not (tmp_path / "back/left-out").exists()


def _tar(*entries: tuple[str, bytes, str]) -> io.BytesIO:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, kind, content in entries:
            entry = tarfile.TarInfo(name)
            entry.type = kind
            entry.linkname = content if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            data = content.encode() if kind == tarfile.REGTYPE else b""
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    archive.seek(0)
    return archive


@pytest.mark.parametrize(
    "entries",
    [
        [("../outside", tarfile.REGTYPE, "x")],
        [("/absolute", tarfile.REGTYPE, "x")],
        [("a/../../outside", tarfile.REGTYPE, "x")],
        [("link", tarfile.SYMTYPE, ".."), ("link/outside", tarfile.REGTYPE, "x")],
        [("link", tarfile.SYMTYPE, ".."), ("link", tarfile.DIRTYPE, ""), ("link/outside", tarfile.REGTYPE, "x")],
        [("hard", tarfile.LNKTYPE, "/etc/passwd")],
        [("device", tarfile.CHRTYPE, "")],
        [("pipe", tarfile.FIFOTYPE, "")],
    ],
)
def test_an_archive_cannot_write_outside(tmp_path: Path, entries: list[tuple[str, bytes, str]]) -> None:
    folder = tmp_path / "folder"
    with pytest.raises(PermissionDeniedError):
        unpack_folder(_tar(*entries), folder)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_folder_keeps_its_mode_and_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    unpack_folder(_tar(("d", tarfile.DIRTYPE, ""), ("d", tarfile.SYMTYPE, str(outside))), tmp_path / "folder")
    assert outside.stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "folder/d").is_symlink()


def test_an_invalid_archive_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="not a valid tar archive"):
        unpack_folder(io.BytesIO(b"x" * 2000), tmp_path / "folder")


def test_pipes_are_left_out_of_an_upload(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("x")
    archive = io.BytesIO()
    pack_folder(tmp_path, archive)
    archive.seek(0)
    with tarfile.open(fileobj=archive) as tar:
        assert tar.getnames() == ["file"]
