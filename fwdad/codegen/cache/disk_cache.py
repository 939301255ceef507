"""Compiled code on disk, shared by later processes.

An entry is a file, named after the digest of everything that its code depends on: the source and
what its names mean, the argument types, this package's part of the code, the versions of the
compilers, the processor. Whatever changes gets another name, so no entry is ever stale.

Whoever writes an entry can make this user run code: machine code is what an entry is for, so no
format could be harmless, and a pickle is no worse than the code in it. An entry is therefore
trusted only if it is this user's own work. Its file, its folder and every folder above must be out
of others' reach (`private_files.py`), and its contents must be signed, under its name, with a key
that only this user has (`cache_key.py`): HMAC-SHA256, verified before anything is unpickled. What
fails the first test is refused with one warning, and code is compiled in memory; what fails the
second, as a damaged file does, is compiled anew and replaced.

There is no cache where nothing can be written, or where no key can be kept.

Importing this module needs Numba.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import hashlib
import hmac
import importlib.resources
import logging
import math
import os
import pickle
import platform
import re
import sys
import types
from collections.abc import Iterator
from importlib.resources.abc import Traversable
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

from fwdad.codegen.cache.cache_key import LOG, find_key, find_or_make_key, place
from fwdad.codegen.cache.private_files import Folder, UntrustedError, opened
from fwdad.codegen.llvm import vector_functions
from fwdad.codegen.llvm.optimisation import contents_in, hide
from fwdad.codegen.llvm.simd import compiled_lanes
from fwdad.codegen.numba_support import CHECK_BOUNDS, HELPERS, runtime_module
from fwdad.codegen.numpy_backend.source import Source
from fwdad.codegen.runtime import libmvec
from fwdad.codegen.runtime.lanes import LaneFunctions
from fwdad.ir.types import Type

MOST_ENTRIES = 2000
MOST_BYTES = 512 * 2**20
_MAGIC = b"fwdad compiled code 2\n"
_UNRESOLVED = ".numba.unresolved$"
_ENVIRONMENT = "_ZN08NumbaEnv"
_SUFFIX = ".fwdad"
_TOLD: set[tuple[str, Path]] = set()


def directory() -> Path | None:
    """Where entries are kept: ``FWDAD_CACHE_DIR``, else the platform's place for caches.

    None if there is no such place, or if ``FWDAD_CACHE_DIR`` is empty.
    """
    wanted = os.environ.get("FWDAD_CACHE_DIR")
    if wanted is None:
        return place("cache")
    return Path(wanted) if wanted else None


# -- digests


def program_digest(source: Source, types: dict[str, Type], options: dict[str, Any]) -> str | None:
    """A digest of all that a program's code depends on, except the types of its arguments.

    None if a global name means something that another process could not find again.
    """
    sources = _own_sources()
    names = {name: _meaning(name, value) for name, value in source.namespace.items()}
    if sources is None or not all(names.values()):
        return None
    parts = [
        ("sources of fwdad", sources),
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


def function_digest(function: types.FunctionType, options: dict[str, Any]) -> str:
    """The same for a Python function that uses no names from outside but those of builtins."""
    code = function.__code__  # what Numba compiles, too; to read the source takes milliseconds
    parts = [
        ("platform", *_platform()),
        ("options", *_texts(options), CHECK_BOUNDS),
        ("numba.config", *_texts(_numba_settings())),
        ("function", function.__module__, function.__qualname__),
        ("code", code.co_code, code.co_consts, code.co_names, code.co_varnames),
    ]
    return _digest(repr(parts).encode())


def entry_digest(program: str, signature: tuple[Any, ...]) -> str:
    """The name of an entry, from a program's digest and Numba's types of the arguments."""
    return _digest(repr((program, [t.name for t in signature])).encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _texts(items: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, str(items[name])) for name in sorted(items)]


@functools.cache
def _own_sources() -> str | None:
    """A digest of the files of ``codegen``, which write the source or are called by it.

    Computed once: the code that has been imported does not change if a file does.
    """
    try:
        sources = sorted(_sources(importlib.resources.files("fwdad.codegen"), ""))
    except OSError:
        return None
    if not sources:  # an installation without sources: an edit could not be seen
        return None
    return _digest(repr(sources).encode())


def _sources(folder: Traversable, above: str) -> Iterator[tuple[str, str]]:
    for f in folder.iterdir():
        if f.is_dir():
            yield from _sources(f, f"{above}{f.name}/")
        elif f.name.endswith(".py"):
            yield above + f.name, _digest(f.read_bytes())


_own_sources()


def _platform() -> list[str]:
    """The versions that compiled the code, and the platform that it runs on."""
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
        libmvec.description(),
    ]


def _numba_settings() -> dict[str, Any]:
    """Numba's settings, without those that do not affect the code of a single function."""
    return {
        name: value
        for name, value in vars(config).items()
        if name.isupper()
        and not name.startswith(("CUDA", "CACHE", "_"))
        and not name.endswith("NUM_THREADS")
        and isinstance(value, (int, float, str, type(None)))
    }


_platform()  # its constant parts are looked up when this module is imported

_LANES = re.compile(rf"({'|'.join(LaneFunctions._fields)})_(\d+)")


def _meaning(name: str, value: Any) -> str | None:
    """What a global name of generated source means, in words that hold in every process."""
    if isinstance(value, ModuleType):
        return f"module {value.__name__}" if value in (np, math) else None
    if name in HELPERS and getattr(runtime_module(name), name) is value:
        return f"{HELPERS[name]}.{name}"
    if vector_functions.FUNCTIONS.get(name) is value:
        return f"vector_functions.{name}"
    lanes = _LANES.match(name)
    if lanes is not None and getattr(compiled_lanes(int(lanes[2])), lanes[1]) is value:
        return f"compiled_lanes({lanes[2]}).{lanes[1]}"
    if isinstance(value, type) and issubclass(value, BaseException):
        return _class_by_name(value)
    return getattr(value, "symbol", None)  # of a call of Python's, provided whenever code is linked


def _class_by_name(value: type) -> str | None:
    """The name of a class that can be imported by it; compiled code holds only this name."""
    module = sys.modules.get(value.__module__)
    if module is builtins or value.__module__ == "__main__":
        return f"builtins.{value.__name__}" if module is builtins else None
    class_of_value = getattr(module, value.__qualname__, None)
    return f"class {value.__module__}.{value.__qualname__}" if class_of_value is value else None


# -- entries


def load(digest: str, signature: tuple[Any, ...]) -> CompileResult | None:
    """The compiled code of an entry; None if there is none, or if anything is wrong with it."""
    path = directory()
    payload = None if path is None else _read(path, digest)
    if payload is None:
        return None
    context = cpu_target.target_context
    try:
        with global_compiler_lock:
            context.refresh()  # what the code calls must be known before it is linked
            result = CompileResult._rebuild(context, *pickle.loads(payload))  # noqa: S301 (verified)
    except Exception as error:  # noqa: BLE001 (whatever is wrong with it, it is compiled anew)
        LOG.info("compiled code %s cannot be loaded: %r", digest, error)
        return None
    if tuple(result.signature.args) != signature:
        LOG.info("compiled code %s has another signature", digest)
        return None
    LOG.debug("loaded %s", digest)
    return result


def save(digest: str, made: CompileResult) -> None:
    """Store compiled code under a digest, if it can be stored."""
    path = directory()
    if path is None or made.lifted or made.library.has_dynamic_globals:
        return
    contents = contents_in(made.library)
    if any(name.startswith(_UNRESOLVED) for name in (*contents.variables, *contents.declared)):
        return  # functions that call each other are linked by Numba, not when they are loaded
    try:
        with opened(path, make=True) as folder:
            key = _key(path)
            payload = None if key is None else _packed(made)
            if key is not None and payload is not None:
                _write(folder, digest, key, payload)
                _prune(folder)
    except UntrustedError as error:
        _tell_once(logging.WARNING, _REFUSED, path, error)
    except OSError as error:
        _tell_once(logging.INFO, "compiled code is not cached in %s: %s", path, error)


def _key(path: Path) -> bytes | None:
    """The key that signs the entries of a folder, if there is a place for one."""
    try:
        return find_or_make_key()
    except OSError as error:
        _tell_once(logging.WARNING, _REFUSED, path, error)
        return None


_REFUSED = (
    "compiled code is not cached in %s, so each process compiles it again: %s. Set "
    "FWDAD_CACHE_DIR to another folder, or to an empty string to switch the cache off"
)


def _tell_once(level: int, text: str, path: Path, error: OSError) -> None:
    """Log what is wrong with a folder, once per folder and message."""
    if (text, path) not in _TOLD:
        _TOLD.add((text, path))
        LOG.log(level, text, path, error)


class _Result(CompileResult):  # type: ignore[misc]
    """A compile result that does not search its module again."""

    __slots__ = ()

    def _find_referenced_environments(self) -> list[Any]:
        names = (n for n in contents_in(self.library).variables if n.startswith(_ENVIRONMENT))
        environments = [lookup_environment(n) for n in names]
        return [e for e in environments if e is not None and e.can_cache()]


def _packed(made: CompileResult) -> bytes | None:
    """A compile result as bytes, or None if it cannot be serialised."""
    try:
        return _serialised(made)
    except Exception as error:  # noqa: BLE001 (what cannot be serialised works without)
        LOG.info("compiled code cannot be serialised: %r", error)
        return None


def _serialised(made: CompileResult) -> bytes:
    """A compile result as bytes, in which only the entry function has a visible name.

    Numba numbers functions as a process compiles them: the same name may mean another function in
    another process, and the linker would confuse the two. The entry itself must be a strong symbol:
    of two weak ones, a second load would run the first's code, with the functions that it calls.
    """
    # nobody reads the type annotations, and formatting them takes longer than all the rest
    first, *rest = _Result(*made)._replace(type_annotation="")._reduce()
    name, kind, (code, bitcode) = first
    own_symbols = {
        made.fndesc.llvm_func_name,
        made.fndesc.llvm_cpython_wrapper_name,
        made.fndesc.llvm_cfunc_wrapper_name,
    }
    if not own_symbols.issuperset(contents_in(made.library).visible):
        module = llvm.parse_bitcode(made.library._final_module.as_bitcode())
        hide(module, own_symbols)
        for name in own_symbols.intersection(contents_in(made.library).visible):
            module.get_function(name).linkage = llvm.Linkage.external
        code = made.codegen._tm.emit_object(module)
        shared = llvm.parse_bitcode(bitcode)
        hide(shared, own_symbols)
        bitcode = shared.as_bitcode()
    return dumps(((name, kind, (code, bitcode)), *rest))


# -- files


def _read(path: Path, digest: str) -> bytes | None:
    """The payload of an entry, or None if there is none that this user has signed."""
    name = f"{digest}{_SUFFIX}"
    try:
        with opened(path, make=False) as folder:
            data = _unchanged(folder, name)
            payload = None if data is None else _verified(data, digest)
            if payload is not None:
                with contextlib.suppress(OSError):
                    folder.touch(name)  # what is used stays
            elif data is not None:
                LOG.info("the file %s was not written by this user: it is replaced", path / name)
            return payload
    except FileNotFoundError:
        return None
    except UntrustedError as error:
        _tell_once(logging.WARNING, _REFUSED, path, error)
    except OSError as error:
        _tell_once(logging.INFO, "compiled code cannot be read from %s: %s", path, error)
    return None


def _unchanged(folder: Folder, name: str) -> bytes | None:
    """The bytes of a file that nobody else can have changed."""
    try:
        return folder.read(name)
    except UntrustedError as error:
        text = "compiled code in %s is not used, and is compiled again: %s"
        _tell_once(logging.WARNING, text, folder.path, error)
        return None


def _verified(data: bytes, digest: str) -> bytes | None:
    """The payload in the bytes of a file, if it was signed with this user's key."""
    head = _MAGIC + bytes.fromhex(digest)
    key = find_key() if data.startswith(head) else None
    if key is None:
        return None
    signature, payload = data[len(head) : len(head) + 32], data[len(head) + 32 :]
    return payload if hmac.compare_digest(signature, _signed(key, head, payload)) else None


def _signed(key: bytes, head: bytes, payload: bytes) -> bytes:
    signature = hmac.new(key, head, "sha256")
    signature.update(payload)
    return signature.digest()


def _write(folder: Folder, digest: str, key: bytes, payload: bytes) -> None:
    head = _MAGIC + bytes.fromhex(digest)
    folder.write(f"{digest}{_SUFFIX}", b"".join((head, _signed(key, head, payload), payload)))
    LOG.debug("saved %s", digest)


def _prune(folder: Folder) -> None:
    """Remove the least recently used entries, and drafts of killed processes."""
    folder.remove_drafts()
    entries = [
        (status.st_mtime, status.st_size, name)
        for name, status in folder.files()
        if name.endswith(_SUFFIX)
    ]
    for name in _surplus(entries):
        folder.remove(name)


def _surplus(entries: list[tuple[float, int, str]]) -> list[str]:
    entries.sort(reverse=True)
    total, kept = 0, 0
    for _, size, _ in entries:
        total += size
        if total > MOST_BYTES or kept == MOST_ENTRIES:
            break
        kept += 1
    return [name for _, _, name in entries[kept:]]
