"""Folders and files that nobody but their owner can have changed.

A path is walked from the root, one name after the other, each opened below the one before: what has
been looked at is what is used, whatever happens to the path meanwhile. Every folder on the way must
be this user's or root's, and only they may write into it: who can write into a folder can put
another one in the place of what is in it. A sticky folder, such as `/tmp`, where all may write but
each rename and remove only what is their own, may be passed through. Links are followed by hand,
under the same conditions. The folder itself, and each file in it, must be this user's, and nobody
else may write there.

What is created here is for its owner alone, whatever the umask is. Files appear whole, by renaming;
there are no locks.

Where the system does not know owners and modes (Windows), a user's folders are kept from others by
the system, and nothing is verified but that a file is no link.
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
# to pass through a folder takes no leave to list it, where the system makes that difference
_FOLDER = getattr(os, "O_DIRECTORY", 0) | _NO_LINK | getattr(os, "O_PATH", os.O_RDONLY)
# nobody waits for the other end of a pipe
_READ = os.O_RDONLY | _NO_LINK | _BINARY | getattr(os, "O_NONBLOCK", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _BINARY
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40
_DRAFT = "writing-"
_ABANDONED = 3600.0  # seconds after which a file that nobody has finished is removed


class UntrustedError(OSError):
    """Somebody else may have changed what is at a path."""


class Folder:
    """A folder that is this user's alone; see :func:`opened`.

    Parameters
    ----------
    path : Path
        Where it is.
    handle : int or None
        The open folder; None where the system has no such thing.
    """

    def __init__(self, path: Path, handle: int | None) -> None:
        self.path = path
        self._handle = handle

    def _at(self, name: str) -> str:
        """A file's path from the handle."""
        return name if self._handle is not None else str(self.path / name)

    def read(self, name: str, *, secret: bool = False) -> bytes:
        """The bytes of a file.

        Parameters
        ----------
        name : str
            The file's.
        secret : bool
            Whether nobody else may even read it.

        Raises
        ------
        UntrustedError
            If it is a link, or no file, or may be the work of another user.
        OSError
            If it cannot be read; :class:`FileNotFoundError` if it is not there.
        """
        shown = f"{self.path}{os.sep}{name}"
        if not _NO_LINK and (self.path / name).is_symlink():
            raise _untrusted(shown, "is a link")
        try:
            handle = os.open(self._at(name), _READ, dir_fd=self._handle)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK):  # the second one is FreeBSD's
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
        """Write a file as a whole.

        Parameters
        ----------
        name : str
            The file's.
        data : bytes
            What is in it.
        new : bool
            Whether a file that is there already stays, be it another process's of just now.
        """
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
        """Give a draft its name."""
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
        """Note that a file has been used just now."""
        os.utime(self._at(name), dir_fd=self._handle)

    def remove(self, name: str) -> None:
        """Remove a file, which another process may have done."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._at(name), dir_fd=self._handle)

    def files(self) -> list[tuple[str, os.stat_result]]:
        """The names and what the system says of everything there."""
        found = []
        listed: Any = self.path
        if self._handle is not None:
            listed = os.open(".", os.O_RDONLY, dir_fd=self._handle)
        try:
            with os.scandir(listed) as items:
                for item in items:
                    with contextlib.suppress(FileNotFoundError):  # another process removes, too
                        found.append((item.name, item.stat(follow_symlinks=False)))
        finally:
            if self._handle is not None:
                os.close(listed)
        return found

    def remove_drafts(self) -> None:
        """Remove what killed processes have not finished."""
        before = time.time() - _ABANDONED
        for name, status in self.files():
            if name.startswith(_DRAFT) and status.st_mtime < before:
                self.remove(name)


@contextlib.contextmanager
def opened(path: Path, *, make: bool) -> Iterator[Folder]:
    """A folder that is this user's alone, open until the end of the block.

    Parameters
    ----------
    path : Path
        Where it is.
    make : bool
        Whether it is created, with all above it, if it is not there.

    Raises
    ------
    UntrustedError
        If another user may have changed it, or what leads to it.
    OSError
        If it cannot be opened; :class:`FileNotFoundError` if it is not there.
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
    """The folder at an absolute path, all names of which can be trusted."""
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
    """Raise if others can put another folder in the place of one in this folder."""
    status = os.fstat(handle)
    # in a sticky folder they cannot
    others = 0 if status.st_mode & stat.S_ISVTX else _OTHERS_WRITE
    _check(status, shown, others, root=True)
    return status


def _below(handle: int, name: str, make: bool) -> int:
    """The folder of a name in an open folder."""
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
    """Give the owner what a umask has taken away, on file systems that have modes."""
    with contextlib.suppress(OSError):  # the modes are looked at before anything is trusted
        os.chmod(name, mode, dir_fd=handle)


def _link(handle: int, name: str, shown: str, error: OSError) -> str:
    """What a link leads to that is no folder of its own; the error, if it is not a link."""
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
    """Raise if it is no file of this user's."""
    if not stat.S_ISREG(status.st_mode):
        raise _untrusted(shown, "is no ordinary file")
    _check(status, shown, others)


def _check(status: os.stat_result, shown: str, others: int, *, root: bool = False) -> None:
    """Raise if another user owns it, or may do to it what only its owner may."""
    if not _BY_HANDLE:
        return
    if status.st_uid != os.geteuid() and not (root and status.st_uid == 0):
        raise _untrusted(shown, f"belongs to the user of number {status.st_uid}")
    if status.st_mode & others & _OTHERS_WRITE:
        raise _untrusted(shown, "may be written by others than its owner (`chmod go-w` mends that)")
    if status.st_mode & others:
        raise _untrusted(shown, "is secret, and may be read by others than its owner")


def _untrusted(shown: str, why: str) -> UntrustedError:
    return UntrustedError(f"{shown} {why}")
