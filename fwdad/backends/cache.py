"""Compiled code on disk, for the processes to come.

An entry is a file, named after the digest of everything that its code came from: the source and
what its names mean, the argument types, this package's part of the code, the versions of what
compiles, the processor. What changes has another name, so that no entry is ever stale. A file says
what it is and what its bytes sum up to, and is believed in nothing before that has been verified.

Files appear whole, by renaming; there are no locks. Where nothing can be written there is no cache.
Whoever can write into the directory can make this user run code: it is made for its owner only.

Importing this module needs Numba.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import hashlib
import importlib.resources
import logging
import math
import os
import pickle
import platform
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np
import scipy
from llvmlite import binding as llvm
from numba.core import config
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import lookup_environment
from numba.core.registry import cpu_target
from numba.core.serialize import dumps

from fwdad.backends import (
    compiled_linalg,
    compiled_math,
    special_functions,
    vector_functions,
    vector_math,
)
from fwdad.backends.lanes import LaneFunctions
from fwdad.backends.numba_library import contents_in, hide
from fwdad.backends.numba_support import CHECK_BOUNDS, SPECIAL_HELPERS
from fwdad.backends.numpy_source import Source
from fwdad.backends.simd import compiled_lanes
from fwdad.tape.types import Type

MOST_ENTRIES = 2000
MOST_BYTES = 512 * 2**20
_MAGIC = b"fwdad compiled code 1\n"
_UNRESOLVED = ".numba.unresolved$"
_ENVIRONMENT = "_ZN08NumbaEnv"
_SUFFIX = ".fwdad"
_ABANDONED = 3600.0  # seconds after which a file that nobody has finished is removed
_LOG = logging.getLogger("fwdad.cache")


def directory() -> Path | None:
    """Where entries are kept: ``FWDAD_CACHE_DIR``, else the platform's place for caches.

    Returns
    -------
    Path or None
        None if there is no such place, or if ``FWDAD_CACHE_DIR`` is empty.
    """
    wanted = os.environ.get("FWDAD_CACHE_DIR")
    if wanted is not None:
        return Path(wanted) if wanted else None
    try:
        if sys.platform == "win32":
            local = os.environ.get("LOCALAPPDATA")
            return Path(local) / "fwdad" / "Cache" if local else None
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "fwdad"
        # a relative path there is to be ignored, as the XDG specification says
        base = Path(os.environ.get("XDG_CACHE_HOME", ""))
        return (base if base.is_absolute() else Path.home() / ".cache") / "fwdad"
    except RuntimeError:  # a user without a home
        return None


# -- what an entry is named after


def program_digest(source: Source, types: dict[str, Type], options: dict[str, Any]) -> str | None:
    """What a program's code depends on, the types of its arguments apart.

    Parameters
    ----------
    source : Source
        The generated source.
    types : dict
        The types that its variables must have.
    options : dict
        What Numba is asked for.

    Returns
    -------
    str or None
        None if a name means something that another process could not find again.
    """
    own = _own_sources()
    names = {name: _meaning(name, value) for name, value in source.namespace.items()}
    if own is None or not all(names.values()):
        return None
    parts = [
        ("sources of fwdad", own),
        ("platform", *_platform()),
        ("options", *_texts(options), CHECK_BOUNDS),
        ("numba.config", *_texts(_numba_settings())),
        ("types", *sorted((n, t.dtype.str, t.ndim) for n, t in types.items())),
        ("names", *_texts(names)),
        ("name", source.name),
        ("code", source.code),
        ("inner", source.inner, [c.inner for c in source.called]),
    ]
    return _digest(repr(parts).encode())


def entry_digest(program: str, signature: tuple[Any, ...]) -> str:
    """The name of an entry.

    Parameters
    ----------
    program : str
        Of :func:`program_digest`.
    signature : tuple
        Numba's types of the arguments.
    """
    return _digest(repr((program, [t.name for t in signature])).encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _texts(items: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, str(items[name])) for name in sorted(items)]


@functools.cache
def _own_sources() -> str | None:
    """A digest of this folder's files, which write the source or are called by it.

    It is taken once: the code that has been imported does not change if a file does.
    """
    folder = importlib.resources.files(__package__)
    try:
        found = {f.name: f.read_bytes() for f in folder.iterdir() if f.name.endswith(".py")}
    except OSError:
        return None
    if not found:  # an installation without sources: an edit could not be seen
        return None
    return _digest(repr([(name, _digest(found[name])) for name in sorted(found)]).encode())


_own_sources()


def _platform() -> list[str]:
    """Whose work the code is, and what it runs on."""
    codegen = cpu_target.target_context.codegen()
    return [
        f"Python {sys.version} {sys.implementation.cache_tag} {sys.maxsize}",
        f"NumPy {np.__version__}",
        f"SciPy {scipy.__version__}",  # whose LAPACK compiled code calls
        f"Numba {numba.__version__}",
        f"llvmlite {llvmlite.__version__}",
        f"LLVM {llvm.llvm_version_info}",
        f"{platform.system()} {platform.machine()}",
        *map(str, codegen.magic_tuple()),  # the triple, the processor and its features
        vector_math.description(),
    ]


def _numba_settings() -> dict[str, Any]:
    """Numba's settings; those that change nothing in the code of one function are left out."""
    return {
        name: value
        for name, value in vars(config).items()
        if name.isupper()
        and not name.startswith(("CUDA", "CACHE", "_"))
        and not name.endswith("NUM_THREADS")
        and isinstance(value, (int, float, str, type(None)))
    }


_platform()  # what of it stays is looked up when this module is imported

_LANES = re.compile(rf"({'|'.join(LaneFunctions._fields)})_(\d+)")


def _meaning(name: str, value: Any) -> str | None:
    """What a global name of generated source means, in words that every process understands."""
    if isinstance(value, ModuleType):
        return f"module {value.__name__}" if value in (np, math) else None
    for module in (compiled_math, compiled_linalg):
        if getattr(module, name, None) is value:
            return f"{module.__name__}.{name}"
    if name in SPECIAL_HELPERS and getattr(special_functions, name) is value:
        return f"special_functions.{name}"
    if vector_functions.FUNCTIONS.get(name) is value:
        return f"vector_functions.{name}"
    lanes = _LANES.match(name)
    if lanes is not None and getattr(compiled_lanes(int(lanes[2])), lanes[1]) is value:
        return f"compiled_lanes({lanes[2]}).{lanes[1]}"
    if isinstance(value, type) and issubclass(value, BaseException):
        return _class_by_name(value)
    return None


def _class_by_name(value: type) -> str | None:
    """A class that is found where it says that it is; compiled code holds but this name."""
    module = sys.modules.get(value.__module__)
    if module is builtins or value.__module__ == "__main__":
        return f"builtins.{value.__name__}" if module is builtins else None
    found = getattr(module, value.__qualname__, None)
    return f"class {value.__module__}.{value.__qualname__}" if found is value else None


# -- entries


def load(digest: str, signature: tuple[Any, ...]) -> CompileResult | None:
    """The compiled code of an entry.

    Parameters
    ----------
    digest : str
        Of :func:`entry_digest`.
    signature : tuple
        The same as there.

    Returns
    -------
    CompileResult or None
        None if there is no such entry, or if anything is wrong with it.
    """
    folder = directory()
    if folder is None:
        return None
    payload = _read(folder / f"{digest}{_SUFFIX}", digest)
    if payload is None:
        return None
    context = cpu_target.target_context
    try:
        with global_compiler_lock:
            context.refresh()  # what the code calls must be known before it is linked
            made = CompileResult._rebuild(context, *pickle.loads(payload))  # noqa: S301 (verified)
    except Exception as error:  # noqa: BLE001 (whatever is wrong with it, it is compiled anew)
        _LOG.info("compiled code %s cannot be loaded: %r", digest, error)
        return None
    if tuple(made.signature.args) != signature:
        _LOG.info("compiled code %s is of another signature", digest)
        return None
    _LOG.debug("loaded %s", digest)
    return made


def save(digest: str, made: CompileResult) -> None:
    """Keep compiled code, if it can be kept.

    Parameters
    ----------
    digest : str
        Of :func:`entry_digest`.
    made : CompileResult
        What Numba has made.
    """
    folder = directory()
    if folder is None or made.lifted or made.library.has_dynamic_globals:
        return
    held = contents_in(made.library)
    if any(name.startswith(_UNRESOLVED) for name in (*held.variables, *held.declared)):
        return  # functions that call each other are linked by Numba, not when they are loaded
    try:
        payload = _packed(made)
    except Exception as error:  # noqa: BLE001 (what cannot be serialised works without)
        _LOG.info("compiled code cannot be serialised: %r", error)
        return
    try:
        _write(folder, digest, payload)
        _prune(folder)
    except OSError as error:
        _say_once(f"compiled code is not cached in {folder}: {error}")


@functools.cache
def _say_once(message: str) -> None:
    _LOG.info(message)


class _Result(CompileResult):  # type: ignore[misc]
    """A compile result that does not look through its module again."""

    __slots__ = ()

    def _find_referenced_environments(self) -> list[Any]:
        names = (n for n in contents_in(self.library).variables if n.startswith(_ENVIRONMENT))
        found = [lookup_environment(n) for n in names]
        return [e for e in found if e is not None and e.can_cache()]


def _packed(made: CompileResult) -> bytes:
    """A compile result as bytes, in which no function but the entry has a name.

    Numba numbers functions as a process compiles them: under the same name another process may have
    another function, which the linker would take for this one.
    """
    # nobody reads the listing of types, and writing it takes longer than all the rest
    first, *rest = _Result(*made)._replace(type_annotation="")._reduce()
    name, kind, (code, bitcode) = first
    own = {
        made.fndesc.llvm_func_name,
        made.fndesc.llvm_cpython_wrapper_name,
        made.fndesc.llvm_cfunc_wrapper_name,
    }
    if not own.issuperset(contents_in(made.library).visible):
        module = llvm.parse_bitcode(made.library._final_module.as_bitcode())
        hide(module, own)
        code = made.codegen._tm.emit_object(module)
        shared = llvm.parse_bitcode(bitcode)
        hide(shared, own)
        bitcode = shared.as_bitcode()
    return dumps(((name, kind, (code, bitcode)), *rest))


# -- files


def _read(path: Path, digest: str) -> bytes | None:
    """The payload of a file, or None if the file is not what it should be."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        _say_once(f"compiled code cannot be read from {path.parent}: {error}")
        return None
    head = _MAGIC + bytes.fromhex(digest)
    found, payload = data[len(head) : len(head) + 32], data[len(head) + 32 :]
    if not data.startswith(head) or found != hashlib.sha256(head + payload).digest():
        _LOG.info("the file %s is damaged: its code is compiled anew", path)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # what is used stays
    return payload


def _write(folder: Path, digest: str, payload: bytes) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    head = _MAGIC + bytes.fromhex(digest)
    draft = folder / f"writing-{os.getpid()}-{os.urandom(8).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)  # Windows has it
    handle = os.open(draft, flags, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(b"".join((head, hashlib.sha256(head + payload).digest(), payload)))
        draft.replace(folder / f"{digest}{_SUFFIX}")
    except BaseException:  # an interrupt leaves no draft behind either
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    _LOG.debug("saved %s", digest)


def _prune(folder: Path) -> None:
    """Remove the entries that have not been used for longest, and drafts of killed processes."""
    entries: list[tuple[float, int, Path]] = []
    drafts: list[Path] = []
    with os.scandir(folder) as found:
        for item in found:
            with contextlib.suppress(FileNotFoundError):  # another process prunes too
                stat = item.stat()
                if item.name.endswith(_SUFFIX):
                    entries.append((stat.st_mtime, stat.st_size, Path(item.path)))
                elif item.name.startswith("writing-") and stat.st_mtime < time.time() - _ABANDONED:
                    drafts.append(Path(item.path))
    _remove([*drafts, *_surplus(entries)])


def _surplus(entries: list[tuple[float, int, Path]]) -> list[Path]:
    entries.sort(reverse=True)
    total, kept = 0, 0
    for _, size, _ in entries:
        total += size
        if total > MOST_BYTES or kept == MOST_ENTRIES:
            break
        kept += 1
    return [path for _, _, path in entries[kept:]]


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
