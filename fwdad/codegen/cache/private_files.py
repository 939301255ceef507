"""Folders and files that nobody but their owner can have changed.

A path is walked from the root, one name after the other, each opened relative to the one before:
what has been checked is what is used, whatever happens to the path meanwhile. Every folder on the
way must belong to this user or to root, and only they may write into it: whoever can write into a
folder can replace what is in it. A sticky folder, such as `/tmp`, where all may write but each may
rename and remove only what is their own, may be passed through. Links are followed by hand, under
the same conditions. The folder itself, and each file in it, must belong to this user, and nobody
else may write there.

What is created here is for its owner alone, whatever the umask is. Files appear whole, by renaming;
there are no locks.

Where the system does not know owners and modes (Windows), the system protects a user's folders from
others, and the only check is that a file is no link.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_BY_HANDLE = os.open in os.supports_dir_fd and hasattr(os, "geteuid")
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)  # Windows has it
# passing through a folder needs no permission to list it, where the system distinguishes them
_FOLDER = getattr(os, "O_DIRECTORY", 0) | _NO_LINK | getattr(os, "O_PATH", os.O_RDONLY)
# do not block on the other end of a pipe
_READ = os.O_RDONLY | _NO_LINK | _BINARY | getattr(os, "O_NONBLOCK", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _BINARY
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40
_DRAFT = "writing-"
_ABANDONED = 3600.0  # seconds after which an unfinished file is removed


class UntrustedError(OSError):
    """Somebody else may have changed what is at a path."""


class Folder:
    """A folder that only this user can change; see :func:`opened`.

    ``handle`` is the open folder, or None where the system has no such thing.
    """

    def __init__(self, path: Path, handle: int | None) -> None:
        self.path = path
        self._handle = handle

    def _at(self, name: str) -> str:
        """A file's path, relative to the handle if there is one."""
        return name if self._handle is not None else str(self.path / name)

    def read(self, name: str, *, secret: bool = False) -> bytes:
        """The bytes of a file; with ``secret``, nobody else may even be able to read it.

        Raises :class:`UntrustedError` if it is a link, no ordinary file, or may be another user's
        work, and :class:`OSError` if it cannot be read.
        """
        shown = f"{self.path}{os.sep}{name}"
        if not _NO_LINK and (self.path / name).is_symlink():
            raise _untrusted(shown, "is a link")
        try:
            handle = os.open(self._at(name), _READ, dir_fd=self._handle)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK):  # the second is FreeBSD's
                raise _untrusted(shown, "is a link") from error
            raise
        try:
            others = stat.S_IRWXG | stat.S_IRWXO if secret else _OTHERS_WRITE
            _check_file(os.fstat(handle), shown, others)
            file = os.fdopen(handle, "rb")
        except BaseException:
            os.close(handle)
            raise
        with file:
            return file.read()

    def write(self, name: str, data: bytes, *, new: bool = False) -> None:
        """Write a file as a whole; with ``new``, a file that is there already stays."""
        draft = f"{_DRAFT}{os.getpid()}-{os.urandom(8).hex()}.tmp"
        path = self._at(draft)
        handle = os.open(path, _CREATE, 0o600, dir_fd=self._handle)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            if self._handle is not None:
                _set_mode(path, 0o600, self._handle)
            self._name(draft, name, new)
        except BaseException:  # an interrupt leaves no draft behind either
            with contextlib.suppress(OSError):
                self.remove(draft)
            raise

    def _name(self, draft: str, name: str, new: bool) -> None:
        """Rename a draft to its final name."""
        by, source, target = self._handle, self._at(draft), self._at(name)
        if new:
            try:
                os.link(source, target, src_dir_fd=by, dst_dir_fd=by)
            except FileExistsError:
                self.remove(draft)
                return
            except OSError:  # a file system without hard links: the last one stays
                new = False
        if new:
            self.remove(draft)
        else:
            os.replace(source, target, src_dir_fd=by, dst_dir_fd=by)

    def touch(self, name: str) -> None:
        """Mark a file as used just now."""
        os.utime(self._at(name), dir_fd=self._handle)

    def remove(self, name: str) -> None:
        """Remove a file, unless another process has done so already."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._at(name), dir_fd=self._handle)

    def files(self) -> list[tuple[str, os.stat_result]]:
        """The name and the status of everything in the folder."""
        paths = []
        listed: Any = self.path
        if self._handle is not None:
            listed = os.open(".", os.O_RDONLY, dir_fd=self._handle)
        try:
            with os.scandir(listed) as items:
                for item in items:
                    with contextlib.suppress(FileNotFoundError):  # another process may remove it
                        paths.append((item.name, item.stat(follow_symlinks=False)))
        finally:
            if self._handle is not None:
                os.close(listed)
        return paths

    def remove_drafts(self) -> None:
        """Remove the drafts that killed processes have left."""
        before = time.time() - _ABANDONED
        for name, status in self.files():
            if name.startswith(_DRAFT) and status.st_mtime < before:
                self.remove(name)


@contextlib.contextmanager
def opened(path: Path, *, make: bool) -> Iterator[Folder]:
    """A folder that only this user can change, open until the end of the block.

    With ``make`` it is created if missing, with all above it. Raises :class:`UntrustedError` if
    another user may have changed it or its path, and :class:`OSError` if it cannot be opened.
    """
    if not _BY_HANDLE:
        if make:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield Folder(path, None)
        return
    handle = _walked(path.absolute(), make)
    try:
        yield Folder(path, handle)
    finally:
        os.close(handle)


def _walked(path: Path, make: bool) -> int:
    """A handle to the folder at an absolute path, every component of which can be trusted."""
    handle, shown, links = os.open("/", _FOLDER), "/", 0
    names = [*reversed(str(path).split("/"))]  # the next one is the last
    try:
        status = _check_way(handle, shown)
        while names:
            name = names.pop()
            if name in ("", "."):
                continue
            inner = f"{shown.rstrip('/')}/{name}"
            try:
                below = _below(handle, name, make)
            except OSError as error:
                target = _link(handle, name, inner, error)
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from error
                names += reversed(target.split("/"))
                if not target.startswith("/"):
                    continue
                below, inner = os.open("/", _FOLDER), "/"
            os.close(handle)
            handle, shown = below, inner
            status = _check_way(handle, shown)
        _check(status, shown, _OTHERS_WRITE)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _check_way(handle: int, shown: str) -> os.stat_result:
    """The status of a folder; raises if others can replace what is in it."""
    status = os.fstat(handle)
    # in a sticky folder they cannot
    others = 0 if status.st_mode & stat.S_ISVTX else _OTHERS_WRITE
    _check(status, shown, others, root=True)
    return status


def _below(handle: int, name: str, make: bool) -> int:
    """A handle to the folder of a name in an open folder."""
    try:
        return os.open(name, _FOLDER, dir_fd=handle)
    except FileNotFoundError:
        if not make:
            raise
    with contextlib.suppress(FileExistsError):  # another process has been first
        os.mkdir(name, 0o700, dir_fd=handle)
        _set_mode(name, 0o700, handle)
    return os.open(name, _FOLDER, dir_fd=handle)


def _set_mode(name: str, mode: int, handle: int) -> None:
    """Set the mode regardless of the umask, on file systems that have modes."""
    with contextlib.suppress(OSError):  # the modes are checked before anything is trusted
        os.chmod(name, mode, dir_fd=handle)


def _link(handle: int, name: str, shown: str, error: OSError) -> str:
    """The target of a link; raises the given error if it is not a link."""
    try:
        status = os.stat(name, dir_fd=handle, follow_symlinks=False)
        is_link = stat.S_ISLNK(status.st_mode)
    except OSError:
        is_link = False
    if not is_link:
        raise error
    _check(status, shown, 0, root=True)  # a link has no modes
    return os.readlink(name, dir_fd=handle)


def _check_file(status: os.stat_result, shown: str, others: int) -> None:
    """Raise if it is no ordinary file, or not this user's alone."""
    if not stat.S_ISREG(status.st_mode):
        raise _untrusted(shown, "is not a regular file")
    _check(status, shown, others)


def _check(status: os.stat_result, shown: str, others: int, *, root: bool = False) -> None:
    """Raise if another user owns it, or has access that only its owner may have."""
    if not _BY_HANDLE:
        return
    if status.st_uid != os.geteuid() and not (root and status.st_uid == 0):
        raise _untrusted(shown, f"belongs to another user (uid {status.st_uid})")
    if status.st_mode & others & _OTHERS_WRITE:
        raise _untrusted(
            shown, ("can be written by users other than its owner (fix it with `chmod go-w`)")
        )
    if status.st_mode & others:
        raise _untrusted(shown, "is secret, but can be read by users other than its owner")


def _untrusted(shown: str, why: str) -> UntrustedError:
    return UntrustedError(f"{shown} {why}")
