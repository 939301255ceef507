"""Compiled code on disk: found by other processes, and never believed when it is damaged."""

import errno
import os
import pickle
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba")

import numba
from llvmlite import binding as llvm

from fwdad.codegen.cache import disk_cache
from fwdad.codegen.cache.cache_key import find_key, find_or_make_key, place
from fwdad.codegen.cache.private_files import opened
from fwdad.codegen.llvm.optimisation import hide
from fwdad.codegen.llvm.simd import compiled_lanes
from fwdad.codegen.numpy_backend.source import Source
from fwdad.codegen.runtime.arithmetic import int_mul
from fwdad.ir.types import FLOAT, INT
from tests.codegen import cached_programs
from tests.codegen.cached_programs import (
    ROOT,
    TooLargeError,
    assert_answers,
    call,
    finish,
    start,
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A directory that two processes have filled at once, and what they returned."""
    base = tmp_path_factory.mktemp("base")
    patch = pytest.MonkeyPatch()
    with patch.context() as p:
        p.setenv("XDG_CONFIG_HOME", str(base / "config"))  # they make the key at once, too
        running = [start(base / "cache"), start(base / "cache")]
        yield base / "cache", [finish(process) for process in running]


# -- processes


def test_two_processes_at_once(filled, plain):
    folder, both = filled
    for one in both:
        assert_answers(one["answers"], plain)
        assert one["compiled"] > 0
    names = [path.name for path in folder.iterdir()]
    assert len(names) == 7  # the Jacobian of `inside` is one more; its `powers` is the same source
    assert all(name.endswith(".fwdad") for name in names)
    assert all(
        disk_cache._read(folder, path.stem) for path in folder.iterdir()
    )  # signed with one key


def test_another_process_compiles_nothing(filled):
    folder, (first, _) = filled
    found = finish(start(folder))
    assert found["answers"] == first["answers"]
    assert found["count"] == {"loaded": 8}
    assert found["compiled"] == 0
    x = cached_programs.X
    jacobian = np.array([[x[1], x[0], 0], [0, np.cos(x[1]) / x[2], -np.sin(x[1]) / x[2] ** 2],
                         [-1, 0, 3 * x[2] ** 2]])  # fmt: skip
    wanted = jacobian.sum() + cached_programs.powers(x[1], 6)[0]
    np.testing.assert_allclose([found["inside"], first["inside"]], wanted, rtol=1e-14)


@pytest.mark.slow
def test_an_edited_helper_is_compiled_anew(filled, tmp_path):
    folder, (first, _) = filled
    shutil.copytree(ROOT / "fwdad", tmp_path / "fwdad")
    for name in ("__init__.py", "cached_programs.py"):
        target = tmp_path / "tests" / "codegen" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / "tests" / "codegen" / name).exists():
            shutil.copy(ROOT / "tests" / "codegen" / name, target)
    helper = tmp_path / "fwdad" / "codegen" / "runtime" / "arithmetic.py"
    text = helper.read_text()
    marker = "    if b < 0:\n        raise ValueError(NO_INT)"
    assert text.count(marker) == 1
    helper.write_text(text.replace(marker, "    if b == 2:\n        return a\n" + marker))
    found = finish(start(folder, tmp_path))
    assert found["count"]["saved"] == 6
    assert found["answers"][0] != first["answers"][0]  # the edit is what runs
    assert found["answers"][1:] == first["answers"][1:]


# -- damage


def test_the_next_function_is_loaded(entry, count):
    assert call() == 7.5
    assert count == {"loaded": 1}


def places(n):
    """Everything at the front, and every 61st byte of the rest."""
    return [*range(150), *range(150, n, 61), n - 1]


def test_every_flipped_bit_is_seen(entry):
    data, digest = entry.read_bytes(), entry.stem
    assert disk_cache._read(entry.parent, digest) is not None
    for k in places(len(data)):
        entry.write_bytes(data[:k] + bytes([data[k] ^ (1 << k % 8)]) + data[k + 1 :])
        assert disk_cache._read(entry.parent, digest) is None, k


def test_every_truncation_is_seen(entry):
    data, digest = entry.read_bytes(), entry.stem
    for k in places(len(data)):
        entry.write_bytes(data[:k])
        assert disk_cache._read(entry.parent, digest) is None, k
    entry.write_bytes(data + b"\0")
    assert disk_cache._read(entry.parent, digest) is None


def signed(digest, payload):
    head = disk_cache._MAGIC + bytes.fromhex(digest)
    return head + disk_cache._signed(find_key(), head, payload) + payload


DAMAGES = {
    "a flipped bit": lambda data, _: data[:-999] + bytes([data[-999] ^ 4]) + data[-998:],
    "truncated": lambda data, _: data[:-1],
    "empty": lambda *_: b"",
    "of another entry": lambda data, digest: signed("0" * 64, data),
    "no pickle": lambda _, digest: signed(digest, b"nothing"),
    "another pickle": lambda _, digest: signed(digest, pickle.dumps((1, 2))),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_compiled_anew(damage, entry, count):
    data = entry.read_bytes()
    entry.write_bytes(DAMAGES[damage](data, entry.stem))
    assert call() == 7.5
    assert count["saved"] == 1
    assert count["loaded"] == 0
    count.clear()
    assert call() == 7.5
    assert count == {"loaded": 1}


def test_nothing_is_unpickled_before_it_is_verified(entry, monkeypatch):
    entry.write_bytes(entry.read_bytes()[:-1])
    monkeypatch.setattr(disk_cache.pickle, "loads", lambda _: pytest.fail("unpickled"))
    assert disk_cache.load(entry.stem, (numba.float64, numba.float64)) is None


def test_code_for_other_arguments_is_not_taken(entry):
    assert disk_cache.load(entry.stem, (numba.float64, numba.int64)) is None


# -- what an entry is named after


def digest(text="def f(x):\n    return (x,)\n", types=None, options=None, **names):
    source = Source("f", text, {"np": np, **names}, [])
    return disk_cache.program_digest(source, types or {"x": FLOAT}, options or {"fastmath": False})


CHANGES = {
    "NumPy": lambda p: p.setattr(np, "__version__", "0.0"),
    "Numba": lambda p: p.setattr(numba, "__version__", "0.0"),
    "llvmlite": lambda p: p.setattr(disk_cache.llvmlite, "__version__", "0.0"),
    "Python": lambda p: p.setattr(sys, "version", "0.0"),
    "helpers": lambda p: p.setattr(disk_cache, "_own_sources", lambda: "other"),
    "processor": lambda p: p.setattr(
        type(disk_cache.cpu_target.target_context.codegen()),
        "_get_host_cpu_name",
        lambda _: "other",
    ),
    "settings": lambda p: p.setattr(disk_cache.config, "LOOP_VECTORIZE", 0),
    "vector library": lambda p: p.setattr(disk_cache.libmvec, "description", lambda: "other"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_the_digest_depends_on(what, monkeypatch):
    before = digest()
    with monkeypatch.context() as patch:
        CHANGES[what](patch)
        assert digest() != before
    assert digest() == before


def test_the_digest_depends_on_the_program():
    load = compiled_lanes(3).load
    kinds = [
        digest(),
        digest(text="def f(x):\n    return (-x,)\n"),
        digest(types={"x": INT}),
        digest(options={"fastmath": True}),
        digest(int_mul=int_mul),
        digest(load_3=load),
        digest(load_3=load, int_mul=int_mul),
        digest(TooLargeError=TooLargeError),
    ]
    assert None not in kinds
    assert len(set(kinds)) == len(kinds)
    one, two = ((numba.float64,), (numba.float64, numba.float64))
    assert disk_cache.entry_digest("p", one) != disk_cache.entry_digest("p", two)
    assert disk_cache.entry_digest("p", one) != disk_cache.entry_digest("q", one)


def test_what_no_other_process_can_find_is_not_named():
    class LocalError(Exception):
        pass

    assert digest(LocalError=LocalError) is None
    assert digest(helper=lambda x: x) is None
    assert digest(int_mul=lambda a, b: a) is None  # the name of a helper is not enough
    assert digest(load_3=compiled_lanes(4).load) is None


def test_no_helper_can_be_mistaken_for_another_processes():
    made = numba.njit(lambda a, b: int_mul(a, b))
    made.compile((numba.int64, numba.int64))
    (result,) = made.overloads.values()
    other = llvm.parse_assembly("define linkonce_odr i64 @helper() { ret i64 1 }\n"
                                "define i64 @main() {\n %x = call i64 @helper()\n ret i64 %x }\n"
                                "define linkonce_odr i64 @NRT_x() { ret i64 1 }")  # fmt: skip
    assert hide(other, {"main"})
    linkage = {f.name: f.linkage.name for f in other.functions}
    hidden = "fwdad.own.helper"  # a name that no function of Numba's has
    assert linkage == {hidden: "internal", "main": "external", "NRT_x": "linkonce_odr"}
    assert not hide(other, {"main"})
    assert not hide(result.library._final_module, {
        result.fndesc.llvm_func_name, result.fndesc.llvm_cpython_wrapper_name,
        result.fndesc.llvm_cfunc_wrapper_name})  # fmt: skip


# -- the directory


def test_no_directory_no_entries(monkeypatch, count):
    monkeypatch.setenv("FWDAD_CACHE_DIR", "")
    assert disk_cache.directory() is None
    assert call() == 7.5
    assert call() == 7.5
    assert count == {}


@pytest.mark.parametrize(
    ("system", "names", "wanted"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/fwdad"),
        ("linux", {"HOME": "/h"}, "/h/.cache/fwdad"),
        ("linux", {"HOME": "/h", "XDG_CACHE_HOME": "relative"}, "/h/.cache/fwdad"),
        ("darwin", {"HOME": "/h"}, "/h/Library/Caches/fwdad"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l/fwdad/Cache"),
        ("win32", {}, None),
        (
            "linux",
            {"HOME": "relative"},
            None,
        ),  # nothing is kept in whatever folder this process is in
        ("win32", {"LOCALAPPDATA": "relative"}, None),
        ("linux", {"HOME": "/h", "FWDAD_CACHE_DIR": "/d"}, "/d"),
    ],
)
def test_places(system, names, wanted, monkeypatch):
    for name in ("FWDAD_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", system)
    found = disk_cache.directory()
    assert (None if found is None else found.as_posix()) == wanted


@pytest.mark.parametrize(
    ("system", "names", "wanted"),
    [
        ("linux", {"XDG_CONFIG_HOME": "/x"}, "/x/fwdad"),
        ("linux", {"HOME": "/h"}, "/h/.config/fwdad"),
        ("linux", {"HOME": "/h", "XDG_CONFIG_HOME": "relative"}, "/h/.config/fwdad"),
        ("linux", {"HOME": "relative"}, None),
        ("darwin", {"HOME": "/h"}, "/h/Library/Application Support/fwdad"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l/fwdad/Config"),
        ("win32", {}, None),
    ],
)
def test_places_of_the_key(system, names, wanted, monkeypatch):
    for name in ("XDG_CONFIG_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", system)
    found = place("config")
    assert (None if found is None else found.as_posix()) == wanted


def test_a_user_without_a_home(monkeypatch):
    def homeless():
        raise RuntimeError

    for name in ("FWDAD_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(Path, "home", homeless)
    assert disk_cache.directory() is None


def test_a_directory_that_cannot_be(tmp_path, monkeypatch, count):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FWDAD_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert call() == 7.5
    assert call() == 7.5
    assert sum(count.values()) <= 2  # it cannot be read, it cannot be written: each said once
    assert "saved" not in count


def test_a_full_disk(folder, monkeypatch, count):
    class Full:
        def __init__(self, handle, _mode):
            os.close(handle)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def write(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk_cache.os, "fdopen", Full)
    assert call() == 7.5
    assert call() == 7.5
    assert count == {"compiled": 1}
    assert list(folder.iterdir()) == []


def write(path, k, size, age):
    path = path / f"{k:064x}.fwdad"
    with opened(path.parent, make=True) as folder:
        disk_cache._write(folder, path.stem, find_or_make_key(), bytes(size))
    os.utime(path, (time.time() - age,) * 2)
    return path


def prune(path):
    with opened(path, make=False) as folder:
        disk_cache._prune(folder)


def test_the_oldest_entries_go(folder, monkeypatch):
    monkeypatch.setattr(disk_cache, "MOST_ENTRIES", 3)
    paths = [write(folder, k, 10, age) for k, age in enumerate((50, 20, 40, 10, 30))]
    assert disk_cache._read(folder, paths[0].stem) == bytes(10)  # what is used is young again
    prune(folder)
    assert {path for path in paths if path.exists()} == {paths[0], paths[1], paths[3]}


def test_the_size_is_bounded(folder, monkeypatch):
    monkeypatch.setattr(disk_cache, "MOST_BYTES", 2500)
    paths = [write(folder, k, 1000, age) for k, age in enumerate((30, 10, 20))]
    prune(folder)
    assert [path.exists() for path in paths] == [False, True, True]


def test_saving_prunes(entry, count, monkeypatch):
    monkeypatch.setattr(disk_cache, "MOST_ENTRIES", 1)
    os.utime(entry, (1, 1))
    assert call(3, 1) == 8
    (left,) = entry.parent.iterdir()
    assert left != entry


def test_drafts_of_killed_processes_go(folder):
    write(folder, 1, 10, 0)
    old, new, foreign = (folder / n for n in ("writing-a.tmp", "writing-b.tmp", "notes.txt"))
    for path in (old, new, foreign):
        path.write_text("half")
    os.utime(old, (1, 1))
    os.utime(foreign, (1, 1))
    prune(folder)
    assert [path.exists() for path in (old, new, foreign)] == [False, True, True]
