"""A file is put in place whole or not at all: kills, full disks, threads, forks and odd targets."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

import gradtape as gt
from gradtape.saving import FileMissing, SaveError
from gradtape.saving.container import replace
from gradtape.saving.container.replace import replacing, resolved, write_at

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
needs_tmpfile = pytest.mark.skipif(sys.platform != "linux", reason="needs unnamed files")


class InBytes:
    """A path object that gives bytes, as ``os.DirEntry`` may."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __fspath__(self) -> bytes:
        return os.fsencode(self._path)


def put(path: Any, data: bytes = b"new") -> None:
    with replacing(path, len(data)) as descriptor:
        write_at(descriptor, data, 0)


@pytest.fixture(params=["unnamed", "named"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to a file: without a name until it is whole, and where there is no such thing."""
    if request.param == "named":
        monkeypatch.setattr(replace._New, "_without_name", lambda self, mode: False)
    elif sys.platform != "linux":
        pytest.skip("needs unnamed files")
    return str(request.param)


@pytest.mark.usefixtures("kind")
def test_a_new_file_and_one_that_replaces_another_are_whole_and_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    for data in (b"", b"first", bytes(100_000), b"x"):
        put(path, data)
        assert path.read_bytes() == data
        assert os.listdir(tmp_path) == ["a.h5"]
    put(InBytes(path), b"bytes")
    assert path.read_bytes() == b"bytes"


def test_data_is_written_at_its_offset_by_threads_and_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda d, data, at: real(d, data[:1000], at))
    parts = [bytes([i]) * 9_999 for i in range(8)]
    with replacing(tmp_path / "a.h5", 8 * 9_999) as descriptor:
        threads = [
            threading.Thread(target=write_at, args=(descriptor, memoryview(part), i * 9_999))
            for i, part in enumerate(parts)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (tmp_path / "a.h5").read_bytes() == b"".join(parts)


def test_bytes_are_contents_and_no_path(tmp_path: Path) -> None:
    model, path = gt.Module("m"), InBytes(tmp_path / "a.h5")
    model.w = gt.Variable(1.0)
    gt.save(model, path)  # type: ignore[arg-type]
    assert gt.load(path).w.item() == 1.0  # type: ignore[arg-type]
    assert gt.load((tmp_path / "a.h5").read_bytes()).w.item() == 1.0  # type: ignore[arg-type]
    for given in (b"b.h5", bytearray(b"b.h5"), memoryview(b"b.h5")):
        with pytest.raises(gt.saving.SaveError, match=r"b'b.h5' is bytes.*os.fsdecode"):
            gt.save(model, given)  # type: ignore[arg-type]
    with pytest.raises(gt.saving.NotAGradtapeFile):
        gt.load(b"b.h5")  # type: ignore[arg-type]


class Crash(BaseException):
    """What no handler expects."""


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize(
    "failure", [OSError(errno.EIO, "Input/output error"), Crash(), ValueError()]
)
@pytest.mark.parametrize(
    "place", ["os.fsync", "os.replace", "os.link", "os.posix_fallocate", "block"]
)
@pytest.mark.parametrize("existing", [True, False])
def test_after_any_failure_there_is_the_old_file_and_nothing_else(
    failure: BaseException,
    place: str,
    existing: bool,
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "a.h5"
    if existing:
        put(path, b"old")
    reached: list[bool] = []

    def fail(*args: Any, **keywords: Any) -> None:
        reached.append(True)
        raise failure

    passed = (place, kind) == ("os.link", "named") or (
        (place, kind, existing) == ("os.replace", "unnamed", False)
    )
    expected = SaveError if isinstance(failure, OSError) else type(failure)
    with monkeypatch.context() as patched:
        if place != "block":
            patched.setattr(place, fail)
        with contextlib.nullcontext() if passed else pytest.raises(expected) as caught:
            _put_or(path, fail if place == "block" else None)
    assert bool(reached) is not passed
    assert os.listdir(tmp_path) == (["a.h5"] if existing or passed else [])
    if existing or passed:
        assert path.read_bytes() == (b"new" if passed else b"old")
    if expected is SaveError and not passed:
        assert f"{path}: cannot be written (Input/output error)" in str(caught.value)
    assert not replace._New.open


def _put_or(path: Path, fail: Any) -> None:
    with replacing(path, 3) as descriptor:
        write_at(descriptor, b"new", 0)
        if fail is not None:
            fail()


def test_an_error_of_what_the_block_reads_is_not_called_one_of_writing(tmp_path: Path) -> None:
    with pytest.raises(FileMissing, match="gone"), replacing(tmp_path / "a.h5", 3):
        raise FileMissing("gone")
    assert not os.listdir(tmp_path)


# -- targets ---------------------------------------------------------------------------------------


@posix
def test_only_a_regular_file_is_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "to_fifo").symlink_to("fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "to_zero").symlink_to("/dev/zero")
    server = socket.socket(socket.AF_UNIX)
    where = os.getcwd()
    os.chdir(tmp_path)  # a socket's path is short
    try:
        server.bind("socket")
    finally:
        os.chdir(where)
    before = sorted(os.listdir(tmp_path))
    for name, reason in {
        "fifo": "it is a named pipe",
        "to_fifo": "it is a named pipe",
        "folder": "it is a folder",
        "socket": "it is a socket",
        "to_zero": "it is a device",
        "/dev/null": "it is a device",
        "loop": "cannot be written",
        "folder/": "it does not name a file",
        "folder/..": "it does not name a file",
        "a\0b": "contains a NUL",
        "n" * 300: "cannot be written",
        "\ud800": "cannot be written|does not exist",
        "nowhere/a.h5": "the folder .*nowhere does not exist",
        "fifo/a.h5": "the folder .*fifo does not exist",
    }.items():
        path = os.path.join(tmp_path, name)
        for check in (resolved, put):
            with pytest.raises(SaveError, match=reason):
                check(path)
    server.close()
    with pytest.raises(SaveError, match="it does not name a file"):
        put("")
    assert sorted(os.listdir(tmp_path)) == before
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@posix
@needs_tmpfile
def test_a_file_that_is_mounted_on_its_own_is_refused_before_the_work(tmp_path: Path) -> None:
    here, there = tmp_path / "a", tmp_path / "my file"
    here.write_bytes(b"old")
    there.write_bytes(b"old")
    if subprocess.run(["mount", "--bind", here, there], capture_output=True).returncode:
        pytest.skip("may not mount")
    try:
        with pytest.raises(SaveError, match=r"my file cannot be written: .* mount its folder"):
            gt.save(gt.Module(), there, functions=False)
        put(here)
    finally:
        subprocess.run(["umount", there], check=True)
    assert there.read_bytes() == b"old"


def test_a_busy_file_is_left_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(source: str, target: str) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    put(tmp_path / "a", b"old")
    monkeypatch.setattr(replace.os, "replace", busy)
    with pytest.raises(SaveError, match=r"busy; if the file is mounted on its own, mount its"):
        put(tmp_path / "a")
    assert [x.read_bytes() for x in tmp_path.iterdir()] == [b"old"]


def test_a_link_stays_a_link_also_to_a_file_that_is_not_there_yet(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.h5"
    link.symlink_to("real/model.h5")
    for data in (b"first", b"second"):
        put(link, data)
        assert link.is_symlink()
        assert (tmp_path / "real" / "model.h5").read_bytes() == data
    (tmp_path / "astray").symlink_to("nowhere/model.h5")
    with pytest.raises(SaveError, match=r"the folder .*nowhere does not exist"):
        put(tmp_path / "astray")


@posix
def test_a_target_is_where_it_was_when_the_save_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with replacing("a.h5", 3) as descriptor:
        os.chdir("elsewhere")
        write_at(descriptor, b"new", 0)
    assert sorted(os.listdir(tmp_path)) == ["a.h5", "elsewhere"]
    assert not os.listdir(tmp_path / "elsewhere")


@posix
@pytest.mark.usefixtures("kind")
def test_modes_are_kept_and_new_files_follow_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    mask = os.umask(0o027)
    try:
        put(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o606)
        put(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o606
    finally:
        os.umask(mask)


@pytest.mark.skipif(sys.platform != "linux", reason="extended attributes are Linux's")
def test_tags_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    put(path)
    try:
        os.setxattr(path, "user.tag", b"mine")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    put(path)
    assert os.getxattr(path, "user.tag") == b"mine"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.usefixtures("kind")
def test_an_owner_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    put(path)
    os.chown(path, 1234, 4321)
    put(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


AS_NOBODY = """
import os, sys
from gradtape.saving import SaveError
from gradtape.saving.container.replace import replacing, write_at
os.setgroups([]); os.setgid(65534); os.setuid(65534)  # who may not read where Python is
def put(path):
    with replacing(path, 3) as descriptor:
        write_at(descriptor, b"new", 0)
os.umask(0)
os.chdir(sys.argv[1])
for path in ("closed/a.h5", "closed/b.h5", "open/readonly.h5"):
    try:
        put(path)
        print("wrote", path)
    except SaveError as error:
        print(error)
put("open/shared.h5")
put("blind/a.h5"); put("blind/a.h5")
"""


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root becomes another")
def test_what_may_not_be_written_is_said_and_a_group_gains_nothing() -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's folder is for its owner alone
        folder = Path(name)
        folder.chmod(0o777)
        folders = {"closed": 0o555, "open": 0o777, "blind": 0o333}
        for part in folders:
            (folder / part).mkdir()
        for file, mode in {"closed/a": 0o666, "open/readonly": 0o644, "open/shared": 0o662}.items():
            put(folder / f"{file}.h5", b"old")
            (folder / f"{file}.h5").chmod(mode)
        for part, mode in folders.items():
            (folder / part).chmod(mode)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, name], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert "closed/a.h5: cannot be written (Permission denied)" in lines[0]
        assert "closed/b.h5: cannot be written (Permission denied)" in lines[1]
        assert "read-only" in lines[2]
        assert (folder / "closed/a.h5").read_bytes() == b"old"
        assert (folder / "blind/a.h5").read_bytes() == b"new"
        assert stat.S_IMODE((folder / "open/shared.h5").stat().st_mode) == 0o622
        assert sorted(os.listdir(folder / "open")) == ["readonly.h5", "shared.h5"]


# -- full disks ------------------------------------------------------------------------------------


@posix
def test_the_space_is_reserved_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    put(path, b"old")
    needed = 2**50
    with pytest.raises(SaveError, match=f"{needed:,} bytes are needed"), replacing(path, needed):
        raise AssertionError("the block was entered")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.h5"]


@posix
@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS])
def test_a_file_system_that_reserves_nothing_is_written_to(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    put(tmp_path / "a.h5", b"new")
    assert (tmp_path / "a.h5").read_bytes() == b"new"


@needs_tmpfile
@pytest.mark.parametrize(
    "code", [errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.ENOSYS]
)
def test_a_file_system_without_unnamed_files_gets_a_named_one(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def refuse(path: Any, flags: int, *args: Any, **keywords: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(code, os.strerror(code))
        return real(path, flags, *args, **keywords)

    monkeypatch.setattr(os, "open", refuse)
    with replacing(tmp_path / "a.h5", 3) as descriptor:
        write_at(descriptor, b"new", 0)
        (name,) = os.listdir(tmp_path)
        assert name.startswith(".gradtape-")
    assert os.listdir(tmp_path) == ["a.h5"]
    assert (tmp_path / "a.h5").read_bytes() == b"new"


# -- kills, threads, forks -------------------------------------------------------------------------

DYING = """
import os, signal, sys
from gradtape.saving.container import replace
path, place = sys.argv[1:]
if place != "link":
    replace._New._without_name = lambda self, mode: False
else:
    os.replace = lambda *a: os.kill(os.getpid(), signal.SIGKILL)
with replace.replacing(path, 3) as descriptor:
    replace.write_at(descriptor, b"new", 0)
    if place == "block":
        os.kill(os.getpid(), signal.SIGKILL)
    if place == "wait":
        print("ready", flush=True)
        sys.stdin.read()
"""


def temporaries(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.endswith(".tmp")]


@needs_tmpfile
@pytest.mark.parametrize("place", ["block", "link"])
def test_what_a_killed_save_left_is_removed_by_the_next_and_nothing_else(
    place: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.h5"
    put(path, b"old")
    others = [
        ".gradtape-0123456789abcdef-0123456789abcdef.tmp",  # another target's
        os.path.basename(replace._prefix(str(path))) + "mine.tmp",
        os.path.basename(replace._prefix(str(path))) + "0123456789abcdef.tmp.gz",
        "0123456789abcdef.tmp",
    ]
    for name in others:
        (tmp_path / name).write_bytes(b"mine")
    died = subprocess.run([sys.executable, "-c", DYING, str(path), place], check=False)
    assert died.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    assert len(os.listdir(tmp_path)) == len(others) + 2
    put(path, b"next")
    assert path.read_bytes() == b"next"
    assert sorted(os.listdir(tmp_path)) == sorted(["a.h5", *others])


@posix
def test_what_another_process_is_writing_is_left_to_it(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with subprocess.Popen(
        [sys.executable, "-c", DYING, str(path), "wait"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        put(path, b"mine")
        assert len(temporaries(tmp_path)) == 1
        writer.communicate("")
    assert writer.returncode == 0
    assert path.read_bytes() == b"new"  # the last one
    assert os.listdir(tmp_path) == ["a.h5"]


@posix
def test_a_named_pipe_or_a_link_of_a_temporary_name_harms_nobody(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    other = tmp_path / "other"
    other.write_bytes(b"mine")
    start = replace._prefix(str(path))
    os.mkfifo(start + "0" * 16 + ".tmp")
    os.symlink(other, start + "1" * 16 + ".tmp")
    put(path)
    assert other.read_bytes() == b"mine"
    assert len(temporaries(tmp_path)) == 2


@pytest.mark.usefixtures("kind")
def test_threads_that_save_to_one_path_leave_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    wrong: list[Any] = []
    put(path, b"0" * 10_000)

    def save(digit: bytes) -> None:
        try:
            for _ in range(20):
                put(path, digit * 10_000)
                found = path.read_bytes()
                if len(found) != 10_000 or len(set(found)) != 1:
                    wrong.append(found[:20])
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=save, args=(str(i).encode(),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert os.listdir(tmp_path) == ["a.h5"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.usefixtures("kind")
def test_a_fork_amid_a_save_holds_nothing_of_it_and_puts_nothing_in_place(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    put(path, b"old")
    with replacing(path, 3) as descriptor:
        write_at(descriptor, b"new", 0)
        child = os.fork()
        if child == 0:  # which leaves the block as an error would
            try:
                os.fstat(descriptor)
            except OSError:
                replace._New.open.clear()
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.h5"]
