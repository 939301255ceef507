"""Where the cache and its key are kept, and the key: a secret of this user that signs entries.

A file with the right owner need not have the right origin: it may have been unpacked from an
archive, or copied from elsewhere. The key that signs entries is therefore not kept beside them, but
in the user's own configuration, where no stranger's archive is unpacked. The key is random, created
when it is first needed, and replaced when it is damaged or may have been read by others; then all
entries are misses. So they are if the key is removed.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import sys
from pathlib import Path
from typing import Literal

from fwdad.codegen.cache.private_files import Folder, UntrustedError, opened

LOG = logging.getLogger("fwdad.cache")
_NAME = "cache.key"
_TEXT = re.compile(rb"[0-9a-f]{64}\n")  # a file full of zeros, as a crash may leave it, is no key


def place(kind: Literal["cache", "config"]) -> Path | None:
    """Where the platform keeps a user's caches or configuration; None if there is no such place."""
    if sys.platform == "win32":
        local = Path(os.environ.get("LOCALAPPDATA", ""))
        return local / "fwdad" / kind.capitalize() if local.is_absolute() else None
    try:
        home = Path.home()
    except RuntimeError:  # a user without a home
        home = Path()
    if sys.platform == "darwin":
        base = home / "Library" / {"cache": "Caches", "config": "Application Support"}[kind]
    else:
        base = Path(os.environ.get(f"XDG_{kind.upper()}_HOME", ""))
        # a relative path there is to be ignored, as the XDG specification says
        base = base if base.is_absolute() else home / f".{kind}"
    # nothing is kept in the current folder
    return base / "fwdad" if base.is_absolute() else None


def find_key() -> bytes | None:
    """The key, or None if there is none.

    Raises :class:`OSError` if there may be one that cannot be read, and :class:`UntrustedError` if
    others might change it.
    """
    where = place("config")
    if where is None:
        return None
    try:
        with opened(where, make=False) as folder:
            return _read(folder)
    except FileNotFoundError:
        return None


def find_or_make_key() -> bytes | None:
    """The key, created if there is none that can be used; None if there is no place for it.

    Raises :class:`OSError` if no key can be kept, and :class:`UntrustedError` if others might
    change it.
    """
    where = place("config")
    if where is None:
        return None
    with opened(where, make=True) as folder:
        try:
            key, is_new = _read(folder), False
        except FileNotFoundError:
            key, is_new = None, True
        if key is None:
            folder.remove_drafts()
            folder.write(_NAME, f"{secrets.token_hex(32)}\n".encode(), new=is_new)
            key = _read(folder)  # another process may have been first: there is one key
        if key is None:
            raise OSError(f"the file {where / _NAME} cannot be read back as it was written")
        return key


def _read(folder: Folder) -> bytes | None:
    """The key in a folder, or None if it is damaged or may be known to others."""
    try:
        text = folder.read(_NAME, secret=True)
    except UntrustedError as error:
        LOG.info("the cache key in a file that others may have read is not used: %s", error)
        return None
    if _TEXT.fullmatch(text) is None:
        LOG.info(
            ("the cache key in %s is not used, because the file is damaged"), folder.path / _NAME
        )
        return None
    return bytes.fromhex(text.decode())
