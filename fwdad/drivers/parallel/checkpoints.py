"""Finished blocks on disk, so that a call that was stopped goes on where it stopped.

A folder has a header, the value of f, and a file for each block. A file is written beside its
place, forced onto the disk and then renamed: whatever ends the process, a file is whole or not
there. Nothing in it is a pickle.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from fwdad.core.version import version
from fwdad.drivers.parallel.blocks import Block, Head
from fwdad.drivers.parallel.digests import digest_of
from fwdad.drivers.parallel.values import decoded, encoded
from fwdad.errors import CheckpointError

_FORMAT = 1
_HEADER = "fwdad-checkpoint.json"
_LOCK = "lock"
_DIGEST = 16
_WORDS = {
    "function": "another function, or one whose code or data have changed",
    "arguments": "other arguments",
    "options": "other options",
    "versions": "other versions",
}


class Work:
    """What a checkpoint is of: digests of f, of its arguments, and the options."""

    def __init__(self, f: Any, arguments: Any, options: dict[str, Any]) -> None:
        self.header = {
            "format": _FORMAT,
            "function": digest_of(f),
            "arguments": digest_of(arguments),
            "options": {key: repr(value) for key, value in sorted(options.items())},
            "versions": {"fwdad": version(), "numpy": np.__version__},
        }

    def difference(self, other: dict[str, Any]) -> str | None:
        """What another header differs in, in words."""
        for key, words in _WORDS.items():
            mine, theirs = self.header[key], other.get(key)
            if mine == theirs:
                continue
            if not isinstance(mine, dict) or not isinstance(theirs, dict):
                return words
            pairs = [
                f"{name}={theirs.get(name)} there, {mine.get(name)} here"
                for name in {**mine, **theirs}
                if mine.get(name) != theirs.get(name)
            ]
            return f"{words}: {'; '.join(pairs)}"
        return None


class Checkpoint:
    """A folder of finished blocks, that one process at a time has open."""

    def __init__(self, path: Any, work: Work) -> None:
        self.folder = Path(path)
        self._work = work
        self._lock: int | None = None
        self.kept = 0
        self._check()

    def _check(self) -> None:
        """Refuse a folder of other work; nothing is written."""
        if not self.folder.exists():
            return
        if not self.folder.is_dir():
            raise CheckpointError(f"checkpoint_to={str(self.folder)!r} is a file: name a folder")
        header = self.folder / _HEADER
        if not header.exists():
            others = [p.name for p in self.folder.iterdir() if not self._is_own(p.name)]
            if others:
                raise CheckpointError(
                    f"checkpoint_to={str(self.folder)!r} has other files in it ({others[0]}): "
                    "name an empty folder, or one that is not there yet"
                )
            return
        try:
            found = json.loads(header.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error
        if found.get("format") != _FORMAT:
            raise self._unreadable(f"format {found.get('format')}, not {_FORMAT}")
        different = self._work.difference(found)
        if different is not None:
            raise CheckpointError(
                f"checkpoint_to={str(self.folder)!r} has blocks of {different}. Name another "
                "folder, or remove this one if its blocks are not wanted any more"
            )

    def _unreadable(self, why: Any) -> CheckpointError:
        return CheckpointError(
            f"checkpoint_to={str(self.folder)!r} cannot be read: {why}. Name another folder, or "
            "remove this one"
        )

    @staticmethod
    def _is_own(name: str) -> bool:
        return name in (_HEADER, _LOCK, "value") or name.endswith((".tmp", ".block"))

    def open(self) -> None:
        """Take the folder; remove what a process that was killed has begun to write."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise self._failed(error) from error
        try:
            _lock(self._lock)
        except OSError as error:
            self.close()
            raise CheckpointError(
                f"checkpoint_to={str(self.folder)!r} is in use by another process: wait for its "
                "end, or name another folder"
            ) from error
        self._check()  # it may have been begun meanwhile
        for left in self.folder.glob("*.tmp"):
            left.unlink()
        if not (self.folder / _HEADER).exists():
            self._write(_HEADER, json.dumps(self._work.header, indent=1).encode())
        self.kept = len(list(self.folder.glob("*.block")))

    def close(self) -> None:
        """Leave the folder to others."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # -- what is in it

    def head(self) -> Head | None:
        """The value, and how the Jacobian is cut; None if there is none yet."""
        found = self._read("value")
        if found is None:
            return None
        (y, aux), arrays = found[0]["tree"], found[1]
        return Head(decoded(y, arrays), decoded(aux, arrays), *found[0]["cut"])

    def keep_head(self, head: Head) -> None:
        """Write it."""
        arrays: list[Any] = []
        tree = [encoded(head.y, arrays), encoded(head.aux, arrays)]
        self._write(
            "value", _packed({"tree": tree, "cut": [head.total, head.first, head.width]}, arrays)
        )

    def block(self, start: int, stop: int) -> Block | None:
        """A finished block; None if there is none, or it is damaged."""
        found = self._read(_block_name(start, stop))
        if found is None:
            return None
        mark, written = (bytes.fromhex(found[0][name]) for name in ("mark", "written"))
        return Block(start, stop, found[1], mark, None, written)

    def keep(self, block: Block) -> None:
        """Write a finished block."""
        if block.head is not None:
            self.keep_head(block.head)
        self._write(
            _block_name(block.start, block.stop),
            _packed({"mark": block.mark.hex(), "written": block.written.hex()}, block.lanes),
        )
        self.kept += 1

    def _write(self, name: str, data: bytes) -> None:
        path = self.folder / name
        beside = path.with_name(f"{name}.tmp")
        try:
            with beside.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
            folder = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(folder)  # the name, too, is on the disk
            finally:
                os.close(folder)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> CheckpointError:
        return CheckpointError(
            f"checkpoint_to={str(self.folder)!r} cannot be written: {error.strerror or error}. "
            f"{self.kept} finished blocks are kept there: once there is room, the same call goes on"
        )

    def _read(self, name: str) -> tuple[dict[str, Any], list[Any]] | None:
        try:
            data = (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unreadable(error) from error
        content, digest = data[:-_DIGEST], data[-_DIGEST:]
        if hashlib.blake2b(content, digest_size=_DIGEST).digest() != digest:
            return None  # the disk has lost some of it: it is computed again
        return _unpacked(content)


def _block_name(start: int, stop: int) -> str:
    return f"{start:012d}-{stop:012d}.block"


def _packed(header: dict[str, Any], arrays: list[Any]) -> bytes:
    """A line of JSON, arrays in NumPy's format, and a digest of all that."""
    file = io.BytesIO()
    file.write(json.dumps({**header, "arrays": len(arrays)}).encode() + b"\n")
    for a in arrays:
        np.lib.format.write_array(file, np.asarray(a), allow_pickle=False)
    content = file.getvalue()
    return content + hashlib.blake2b(content, digest_size=_DIGEST).digest()


def _unpacked(content: bytes) -> tuple[dict[str, Any], list[Any]]:
    file = io.BytesIO(content)
    header = json.loads(file.readline())
    read = [np.lib.format.read_array(file, allow_pickle=False) for _ in range(header["arrays"])]
    return header, read


def _lock(descriptor: int) -> None:
    """Lock a file until it is closed, or the process ends; an OSError if another one has."""
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415  (each system has one of the two)

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl  # noqa: PLC0415

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
