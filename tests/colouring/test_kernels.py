"""Kernels under Numba, on lists, and from the cache: the same colours."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from fwdad.colouring import ORDERS, colour, kernels
from fwdad.colouring.colouring import KINDS
from fwdad.colouring.kernels import index_array, kernel
from tests.colouring.patterns import ALL, SYMMETRIC

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="needs Numba")


@kernel("out")
def running_sums(values, out):
    """Sums so far; returns the last one."""
    total = 0
    for k in range(len(values)):
        total += values[k]
        out[k] = total
    return total


def test_on_lists():
    values = np.arange(5)
    out = index_array(5, 0, values)
    assert running_sums.run_on_lists(values, out) == 10
    assert out.tolist() == [0, 1, 3, 6, 10]
    assert running_sums.__doc__.startswith("Sums")


@needs_numba
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
def test_compiled(dtype):
    values = np.arange(5, dtype=dtype)
    out = np.zeros(5, dtype)
    assert running_sums.run_compiled(values, out) == 10
    assert out.tolist() == [0, 1, 3, 6, 10]


@needs_numba
def test_which_runs(monkeypatch):
    """Python for few steps, in all, Numba for many; Numba for all that it has compiled."""
    ran = []
    double = kernel("out")(lambda out: None)
    monkeypatch.setattr(type(double), "run_on_lists", lambda *_: ran.append("lists"))
    monkeypatch.setattr(type(double), "run_compiled", lambda *_: ran.append("compiled"))
    double(np.zeros(1), steps=kernels.FEW_STEPS - 1)
    double(np.zeros(1), steps=1)
    monkeypatch.setattr(kernels, "have_numba", lambda: False)
    double(np.zeros(1), steps=kernels.FEW_STEPS)
    assert ran == ["lists", "compiled", "lists"]


def colours_of(patterns, kinds, orders):
    """All colours and all that comes back, as lists."""
    found = {}
    for name, pattern in patterns.items():
        for kind in kinds:
            if kind in {"star", "acyclic"} and name not in SYMMETRIC:
                continue
            for order in orders:
                c = colour(pattern, kind, order)
                a = pattern.astype(float)
                columns = None if c.column_colours is None else a @ c.column_seeds()
                rows = None if c.row_colours is None else c.row_seeds() @ a
                sides = (c.column_colours, c.row_colours, c.decompress(columns, rows))
                found[f"{name} {kind} {order}"] = [None if x is None else x.tolist() for x in sides]
    return found


@needs_numba
def test_the_same_with_numba_and_without(monkeypatch):
    monkeypatch.setattr(kernels, "FEW_STEPS", 0)
    compiled = colours_of(ALL, KINDS, (None, *ORDERS))
    monkeypatch.setattr(kernels, "have_numba", lambda: False)
    assert colours_of(ALL, KINDS, (None, *ORDERS)) == compiled


SCRIPT = """
import json, logging, sys
sys.modules.update({blocked!r})
from fwdad.colouring import colour
from tests.colouring.patterns import laplacian
logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
print(json.dumps([colour(laplacian(60, 60), k, o).column_colours.tolist()
    for k in ("columns", "star", "acyclic") for o in ("natural", "smallest_last")]))
"""


def run(blocked, cache):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(blocked=blocked)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"FWDAD_CACHE_DIR": str(cache), "PYTHONPATH": str(Path.cwd())},
    )
    return json.loads(done.stdout), done.stderr


@pytest.mark.slow
@needs_numba
def test_compiled_code_is_kept(tmp_path):
    """The second process loads what the first has compiled; one without Numba finds the same."""
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    tmp_path.chmod(0o700)
    first, told = run({}, cache)
    saved = told.count(":saved ")
    assert saved >= 4
    second, told = run({}, cache)
    assert told.count(":saved ") == 0
    assert told.count(":loaded ") == saved
    without, told = run({"numba": None}, "")
    assert "loaded" not in told
    assert first == second == without
