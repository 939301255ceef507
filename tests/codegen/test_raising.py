"""Compiled code that raises frees the arrays that it has made, call after call."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fwdad

pytest.importorskip("numba")
from numba.core.runtime import _nrt_python as nrt
from numba.core.runtime import rtsys

from fwdad.codegen.llvm.nests import partition

OUTSIDE = 10**6


def one_block(x: Any, i: int) -> Any:
    z = np.cumsum(np.sin(x))
    return z[i] * z.sum()


def in_a_loop(x: Any, i: int) -> Any:
    total = 0.0
    for k in range(4):
        w = np.cumsum(x) * k
        total += w[i] if k == 3 else w[0]
    return total


def _folded(x: Any, i: int, depth: int) -> Any:
    sums = np.cumsum(x)
    return sums[i] if depth == 0 else _folded(sums, i, depth - 1) * 1.5


def in_a_recursion(x: Any, i: int) -> Any:
    return _folded(x, i, 3) + x[0]


def singular(x: Any, i: int) -> Any:
    matrix = np.outer(x, x) * (i * 0.0)
    return np.linalg.solve(matrix, np.cumsum(x)).sum() + np.linalg.inv(matrix).sum()


def grown(x: Any, i: int) -> Any:
    s = x
    while s[0] < 50:
        s = np.cumsum(s * 1.1) + 1
    return s[i]


PROGRAMS = [one_block, in_a_loop, in_a_recursion, singular, grown]


def pushed(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, i: fwdad.jvp(lambda x: f(x, i), x, np.ones_like(x))


def value(f: Callable[..., Any]) -> Callable[..., Any]:
    return f


@pytest.fixture
def counted() -> Iterator[Callable[[], int]]:
    """How many arrays of compiled code there are now."""
    nrt.memsys_enable_stats()

    def living() -> int:
        stats = rtsys.get_allocation_stats()
        return int(stats.mi_alloc - stats.mi_free)

    yield living
    nrt.memsys_disable_stats()


def kept_by_raising(f: Callable[..., Any], living: Callable[[], int]) -> float:
    """How many arrays are left behind by each call that raises."""
    x = np.ones(5)
    kind: Any = (IndexError, np.linalg.LinAlgError)
    times, before = 10, 0
    for k in range(times + 2):
        if k == 2:
            before = living()
        with pytest.raises(kind):
            f(x, OUTSIDE)
    return (living() - before) / times


@pytest.fixture(params=["whole", "in parts"])
def _cut(request: Any, monkeypatch: Any, tmp_path: Any) -> None:
    """Whether functions are long that have more than a few lines."""
    if request.param == "in parts":
        monkeypatch.setattr(partition, "LINES", 6)
        monkeypatch.setenv("FWDAD_CACHE_DIR", str(tmp_path))


@pytest.mark.usefixtures("_cut")
@pytest.mark.parametrize("way", [value, pushed], ids=["value", "jvp"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_nothing_is_kept(program: Any, way: Any, counted: Any) -> None:
    assert kept_by_raising(fwdad.jit(way(program)), counted) == 0


TWICE = """
import numpy as np
import fwdad

def totals(x):
    return x.reshape(10, 20).sum(0) * 2  # it raises while the argument has two owners

f = fwdad.jit(totals)
f(np.ones(200))
for _ in range(200):
    try:
        f(np.ones(100))
    except ValueError:
        pass
    others = [np.ones(n) for n in range(2, 60)]  # they are where freed memory was
"""


def test_an_argument_is_freed_once(tmp_path: Any) -> None:
    (tmp_path / "twice.py").write_text(TWICE)
    subprocess.run([sys.executable, tmp_path / "twice.py"], check=True)


@pytest.mark.usefixtures("_cut")
@pytest.mark.parametrize("program", [one_block, in_a_loop, singular])
def test_gradients_keep_nothing(program: Any, counted: Any) -> None:
    assert kept_by_raising(fwdad.jit(fwdad.grad(program)), counted) == 0


def _sums(y: Any) -> Any:
    return sum(np.sum(part) for part in y) if isinstance(y, tuple) else np.sum(y)


NOT_FINITE, NEGATIVE = np.full((4, 4), np.nan), -np.eye(4)
OF_MATRICES = {
    "inv": (np.linalg.inv, np.zeros((4, 4))),
    "inv_of_stack": (np.linalg.inv, np.zeros((2, 4, 4))),
    "matrix_power": (lambda a: np.linalg.matrix_power(a, -2), np.zeros((4, 4))),
    "cholesky": (np.linalg.cholesky, NEGATIVE),
    "det": (np.linalg.det, np.ones((3, 4))),
    "slogdet": (np.linalg.slogdet, np.ones((3, 4))),
    "eigh": (lambda a: np.linalg.eigh(a)[0], NOT_FINITE),
    "eigh_upper": (lambda a: np.linalg.eigh(a, "U")[0], NOT_FINITE),
    "eigvalsh": (np.linalg.eigvalsh, NOT_FINITE),
    "svd": (lambda a: np.linalg.svd(a)[1], NOT_FINITE),
    "svdvals": (lambda a: np.linalg.svd(a, compute_uv=False), NOT_FINITE),
    "pinv": (np.linalg.pinv, NOT_FINITE),
    "lstsq": (lambda a: np.linalg.lstsq(a, np.ones(4))[0], np.ones((3, 4))),
}


@pytest.mark.parametrize("name", OF_MATRICES)
def test_functions_of_matrices_keep_nothing(name: str, counted: Any) -> None:
    f, a = OF_MATRICES[name]
    compiled = fwdad.jit(lambda a: _sums(f(a)))
    times, before = 10, 0
    for k in range(times + 2):
        if k == 2:
            before = counted()
        with pytest.raises(np.linalg.LinAlgError):
            compiled(a)
    assert counted() == before


@pytest.mark.parametrize("way", [value, pushed, fwdad.grad], ids=["value", "jvp", "grad"])
def test_calls_are_right_after_one_that_raised(way: Any) -> None:
    f, x = fwdad.jit(way(one_block)), np.linspace(0.5, 1.0, 5)
    expected = way(one_block)(x, 2)
    for _ in range(3):
        np.testing.assert_allclose(f(x, 2), expected, rtol=1e-14)
        with pytest.raises(IndexError):
            f(x, OUTSIDE)
    np.testing.assert_array_equal(x, np.linspace(0.5, 1.0, 5))


LOG = np.zeros(2)


def noted(x: Any) -> Any:
    LOG[0] += 1.0
    if x[0] > 0.2:
        raise ValueError("too much")
    return np.sum(x)


def noted_in_a_loop(x: Any) -> Any:
    total = 0.0
    for k in range(len(x)):
        LOG[0] += 1.0
        if x[k] > 0.2:
            raise ValueError("too much")
        total += x[k]
    return total


@pytest.mark.parametrize("f", [noted, noted_in_a_loop])
def test_what_is_not_run_again_names_its_line(f: Any) -> None:
    """A program that has written stops where it raised, and says where that is."""
    g = fwdad.jit(f)
    for _ in range(2):
        LOG[:] = 0.0
        with pytest.raises(ValueError, match="too much") as raised:
            g(np.array([0.7, 0.1]))
        assert LOG[0] == 1.0
        assert any('raise ValueError("too much")' in note for note in raised.value.__notes__)
