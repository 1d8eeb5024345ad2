"""Put a file in place completely or not at all, and leave nothing behind."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import sys
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

from ...core.errors import GradtapeError
from ..errors import SaveError

try:
    import fcntl
except ImportError:  # Windows, and WebAssembly, where a process is alone
    _LOCKS = False
else:
    _LOCKS = True

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
# what a file system says that has no unnamed files, or cannot reserve space
_NOT_HERE = {
    errno.EOPNOTSUPP,
    errno.ENOTSUP,
    errno.EISDIR,
    errno.EINVAL,
    errno.ENOENT,
    errno.ENOSYS,
    errno.ENODEV,
}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_SEEKING = threading.Lock()
_PIECE = 1 << 22  # bytes that are copied at a time


def resolved(path: str | os.PathLike[str] | os.PathLike[bytes], folder: bool = False) -> str:
    """Return the absolute path of a file, without links, if it can be written there.

    Parameters
    ----------
    path
        The user's path. The target of a symbolic link need not exist.
    folder
        Whether the file is a folder. False by default.

    Raises
    ------
    SaveError
        If the path cannot be a file's, its folder does not exist, or the target is not a regular
        file, is not writable, or is mounted on its own. Also if it is bytes, which are a file's
        contents for reading.
    """
    if isinstance(path, (bytes, bytearray, memoryview)):
        raise SaveError(
            f"{bytes(path[:80])!r} is bytes, which stand for a file's contents and not for a path: "
            "give a str or a pathlib.Path; os.fsdecode(path) makes a str of a path in bytes"
        )
    given = os.fsdecode(path)
    try:
        if "\0" in given:
            raise SaveError(f"{given!r} is not a path: it contains a NUL character")
        if os.path.basename(given) in ("", os.curdir, os.pardir):
            raise SaveError(f"{given!r} cannot be written: it does not name a file")
        real = os.path.realpath(given)
        above = os.path.dirname(real)
        if not os.path.isdir(above):
            raise SaveError(f"{real}: the folder {above} does not exist")
        held = _stat(given)
        if held is None:
            return real
        if not (stat.S_ISDIR if folder else stat.S_ISREG)(held.st_mode):
            wanted = "a folder" if folder else "a regular file"
            kind = next((word for test, word in _KINDS if test(held.st_mode)), "a file")
            raise SaveError(f"{real} cannot be written: it is {kind}, not {wanted}")
        if _is_mounted(real):
            raise SaveError(
                f"{real} cannot be written: the file is mounted on its own, and such a file cannot "
                "be replaced by a complete new one; mount its folder instead"
            )
        if not os.access(real, os.W_OK):
            raise SaveError(f"{real} cannot be written: the existing file is read-only")
        return real
    except (OSError, ValueError) as error:  # ValueError: characters that no path can hold
        raise SaveError(f"{given!r} cannot be written ({error})") from error


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str] | os.PathLike[bytes], size: int) -> Iterator[int]:
    """Write a file that takes its place, complete and on disk, when the block ends without error.

    Until then, and after any error or the end of the process, the old file is unchanged. Where the
    system supports it, the new file has no name until it is complete. Elsewhere it is a hidden,
    locked file next to the target, and the next save to the same target removes it if its process
    has ended. A replaced file keeps its permissions, its access list and, where that is allowed,
    its owner; other hard links to it keep the old contents. If several processes save at the same
    time, the last one wins.

    Parameters
    ----------
    path
        The target; see :func:`resolved`. A symbolic link is kept, and its target is replaced.
    size
        The size of the file in bytes, which is reserved before the block starts. To write less,
        truncate the descriptor before the block ends.

    Yields
    ------
    int
        A descriptor for writing and reading, for :func:`write_at`.

    Raises
    ------
    SaveError
        If the file cannot be written. The message has the system's reason and, for a full disk, the
        needed and the free bytes.
    """
    target = resolved(path)
    folder = os.path.dirname(target)
    free = None
    new = None
    try:
        _sweep(target)
        free = _free(folder)
        new = _New(target)
        new.reserve(size)
        yield new.descriptor
        os.fsync(new.descriptor)
        new.put()
    except OSError as error:
        if isinstance(error, GradtapeError):  # of what the block reads
            raise
        reason = error.strerror or str(error)
        if error.errno in _FULL:
            room = "" if free is None else f", {free:,} are free"
            reason += f": {size:,} bytes are needed{room}"
        elif error.errno == errno.EBUSY:
            reason += "; if the file is mounted on its own, mount its folder instead"
        raise SaveError(f"{target}: cannot be written ({reason})") from error
    finally:
        if new is not None:
            new.close()
    with contextlib.suppress(OSError):  # not every system lets a folder be synced
        _sync_folder(folder)


def put_in_place(source: str, path: str) -> None:
    """Copy a file, so that permissions, links and the rest remain as in files of gradtape."""
    size, offset = os.path.getsize(source), 0
    with open(source, "rb") as file, replacing(path, size) as descriptor:
        while piece := file.read(_PIECE):
            write_at(descriptor, piece, offset)
            offset += len(piece)


@contextlib.contextmanager
def replacing_file(path: str, name: str = "") -> Iterator[str]:
    """Let a block write a new file under a name, then put it in place like :func:`replacing`.

    Parameters
    ----------
    path
        The target.
    name
        The new file's name until then; by default the target's.

    Yields
    ------
    str
        A path in a new, hidden folder next to the target.
    """
    target = resolved(path)
    with _new_folder(target) as folder:
        place = os.path.join(folder, name or os.path.basename(target))
        yield place
        put_in_place(place, target)


@contextlib.contextmanager
def replacing_folder(path: str) -> Iterator[str]:
    """Fill a folder that takes another's place, complete and on disk, when the block ends.

    Until then, and after any error or the end of the process, the old folder is unchanged. Where
    the system can exchange two names, there is no moment without a folder of this name.

    Yields
    ------
    str
        A new, empty folder next to the target, which is hidden and locked. The next save to the
        same target removes it if its process has ended.
    """
    target = resolved(path, folder=True)
    with _new_folder(target) as new:
        yield new
        for folder, _, names in os.walk(new):
            for name in names:
                _sync(os.path.join(folder, name))
            with contextlib.suppress(OSError):  # not every system lets a folder be synced
                _sync_folder(folder)
        held = _stat(target)
        if held is not None:
            os.chmod(new, held.st_mode & 0o777)
        if held is None:
            os.rename(new, target)
        elif not _exchanged(new, target):
            old = f"{_prefix(target)}{secrets.token_hex(8)}.tmp"
            os.rename(target, old)
            try:
                os.rename(new, target)
            except OSError:
                os.rename(old, target)
                raise
            shutil.rmtree(old, ignore_errors=True)
        with contextlib.suppress(OSError):
            _sync_folder(os.path.dirname(target))


@contextlib.contextmanager
def _new_folder(target: str) -> Iterator[str]:
    """Create a hidden, locked folder next to a target, and remove what is left of it at the end."""
    descriptor = -1
    try:
        if _stat(target) is not None:  # otherwise one of them may be all that there is
            _sweep(target)
        new, descriptor = _made_folder(target)
        try:
            yield new
        finally:
            shutil.rmtree(new, ignore_errors=True)
    except OSError as error:
        if isinstance(error, GradtapeError):
            raise
        raise SaveError(f"{target}: cannot be written ({error.strerror or error})") from error
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _made_folder(target: str) -> tuple[str, int]:
    """Create a folder, and lock it; return its path and the lock's descriptor, or -1."""
    while True:
        new, descriptor = f"{_prefix(target)}{secrets.token_hex(8)}.tmp", -1
        os.mkdir(new)
        if not _LOCKS:
            return new, descriptor
        with contextlib.suppress(FileNotFoundError):  # who sweeps was quicker than the lock
            descriptor = os.open(new, os.O_RDONLY | os.O_DIRECTORY)
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_SH)
            if os.path.samestat(os.fstat(descriptor), os.stat(new)):
                return new, descriptor
        if descriptor >= 0:
            os.close(descriptor)


def _exchanged(new: str, target: str) -> bool:
    """Exchange two folders' names in one step, if the system can."""
    if sys.platform != "linux":
        return False
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return not function(here, os.fsencode(new), here, os.fsencode(target), exchange)


def write_at(descriptor: int, data: Any, offset: int) -> None:
    """Write all of ``data``, contiguous bytes, at ``offset``, in several calls if needed.

    Threads may share the descriptor.
    """
    view = memoryview(data)
    rest = view.cast("B") if view.nbytes else view[:0]
    while rest.nbytes:
        if sys.platform != "win32":
            done = os.pwrite(descriptor, rest, offset)
        else:
            with _SEEKING:
                os.lseek(descriptor, offset, os.SEEK_SET)
                done = os.write(descriptor, rest)
        rest = rest[done:]
        offset += done


class _New:
    """The new file: open, locked, and without a name where the system supports that."""

    #: What is being written. A forked child closes its copies, which would keep the space of a
    #: file that is gone, and the lock of a save that died.
    open: ClassVar[set[_New]] = set()

    def __init__(self, target: str) -> None:
        self.target = target
        self.temporary = f"{_prefix(target)}{secrets.token_hex(8)}.tmp"
        self.descriptor = -1
        self.named = False
        old = _stat(target)
        mode = 0o666 if old is None else old.st_mode & 0o777
        _New.open.add(self)
        try:
            if not self._without_name(mode):
                self._with_name(mode)
            if old is not None:
                self._dress(old)
        except BaseException:
            self.close()
            raise

    def _without_name(self, mode: int) -> bool:
        if sys.platform != "linux":
            return False
        try:
            folder = os.path.dirname(self.target)
            self.descriptor = os.open(folder, os.O_RDWR | os.O_TMPFILE, mode)
        except OSError as error:
            if error.errno in _NOT_HERE:
                return False
            raise
        if not os.path.exists(f"/proc/self/fd/{self.descriptor}"):  # nothing to name it by
            os.close(self.descriptor)
            self.descriptor = -1
            return False
        self._lock()
        return True

    def _with_name(self, mode: int) -> None:
        self.named = True
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        while True:
            self.descriptor = os.open(self.temporary, flags, mode)
            self._lock()
            if os.name == "nt" or os.fstat(self.descriptor).st_nlink:
                return
            os.close(self.descriptor)  # who sweeps was quicker than the lock
            self.descriptor = -1

    def _lock(self) -> None:
        """Mark the file as in use. The lock is shared, because HDF5 takes such a lock to read."""
        if _LOCKS:  # on Windows, nobody can remove a file that is open
            with contextlib.suppress(OSError):
                fcntl.flock(self.descriptor, fcntl.LOCK_SH)

    def _dress(self, old: os.stat_result) -> None:
        """Copy what the old file has besides its contents, as far as that is allowed."""
        if sys.platform == "win32":
            return
        mode, new = old.st_mode & 0o777, os.fstat(self.descriptor)
        if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
            try:
                os.fchown(self.descriptor, old.st_uid, old.st_gid)
            except OSError:
                try:
                    os.fchown(self.descriptor, -1, old.st_gid)
                except OSError:  # another group may do no more than everyone
                    mode = mode & 0o707 | (mode & 0o007) << 3
        with contextlib.suppress(OSError):  # some file systems have no modes
            os.fchmod(self.descriptor, mode)
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                for name in os.listxattr(self.target):
                    if name == "system.posix_acl_access" or name.startswith("user."):
                        os.setxattr(self.descriptor, name, os.getxattr(self.target, name))

    def reserve(self, size: int) -> None:
        """Reserve the space, where the file system can."""
        if size and hasattr(os, "posix_fallocate"):  # not on Windows, macOS and WebAssembly
            try:
                os.posix_fallocate(self.descriptor, 0, size)
            except OSError as error:
                if error.errno not in _NOT_HERE:
                    raise

    def put(self) -> None:
        """Put the file in place.

        A new file never gets another name, so a kill never leaves one behind. A file that replaces
        another has a temporary name for an instant, because a link cannot replace a file.
        """
        if not self.named:
            folder = os.open(os.path.dirname(self.target), os.O_PATH | os.O_DIRECTORY)
            try:  # with a folder's descriptor, or the link would be one to the link in /proc
                source = f"/proc/self/fd/{self.descriptor}"
                with contextlib.suppress(FileExistsError):
                    os.link(source, os.path.basename(self.target), dst_dir_fd=folder)
                    return
                self.named = True
                os.link(source, os.path.basename(self.temporary), dst_dir_fd=folder)
            finally:
                os.close(folder)
        if os.name == "nt":  # which renames no file that is open
            os.close(self.descriptor)
            self.descriptor = -1
        os.replace(self.temporary, self.target)
        self.named = False

    def close(self) -> None:
        """Close the file; if it is not in place, it is gone."""
        if self in _New.open:  # else this is a forked child, and the file is its parent's
            if self.named:
                with contextlib.suppress(OSError):
                    os.unlink(self.temporary)
            self._shut()

    def _shut(self) -> None:
        _New.open.discard(self)
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def _forget() -> None:
    for new in tuple(_New.open):
        new._shut()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


# -- what is there ---------------------------------------------------------------------------------


def _prefix(target: str) -> str:
    """Return the prefix of the temporary names for a target; its length is always the same."""
    folder, name = os.path.split(target)
    mark = hashlib.blake2b(os.fsencode(name), digest_size=8).hexdigest()
    return os.path.join(folder, f".gradtape-{mark}-")


def _sweep(target: str) -> None:
    """Remove what killed saves to this target left: files with their names that are not in use."""
    folder, start = os.path.split(_prefix(target))
    with contextlib.suppress(OSError):  # it may be a folder that cannot be listed
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(start)]
        for name in names:
            if re.fullmatch(r"[0-9a-f]{16}\.tmp", name[len(start) :]):
                with contextlib.suppress(OSError):
                    _remove_unused(os.path.join(folder, name))


def _remove_unused(path: str) -> None:
    if sys.platform == "win32":
        os.unlink(path)  # fails if it is open, or a folder
        return
    if not _LOCKS:
        return  # it may be in use
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path) if stat.S_ISDIR(mode) else os.unlink(path)
    finally:
        os.close(descriptor)


def _is_mounted(path: str) -> bool:
    """Return whether something is mounted at a file itself, as containers can have it."""
    with contextlib.suppress(OSError), open("/proc/self/mountinfo", "rb") as mounts:
        # blanks and others are written as octal numbers
        escaped = re.sub(rb"[ \t\n\\]", lambda x: b"\\%03o" % ord(x[0]), os.fsencode(path))
        return any(line.split(b" ", 5)[4] == escaped for line in mounts)
    return False


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _free(folder: str) -> int | None:
    if sys.platform == "win32":
        return None
    with contextlib.suppress(OSError):
        room = os.statvfs(folder)
        return room.f_bavail * room.f_frsize
    return None


def _sync(file: str) -> None:
    with open(file, "rb+") as stream:
        os.fsync(stream.fileno())


def _sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
