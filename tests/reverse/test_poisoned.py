"""What is not put back is read by nobody: on the way back it is overwritten with NaN."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import UntraceableError
from fwdad.reverse.control import Control
from fwdad.reverse.pull import Pullback
from fwdad.tape.ops import Value, is_array
from fwdad.tape.scattering import target_of
from fwdad.tape.symbol import Symbol
from tests.reverse.programs import PROGRAMS
from tests.reverse.random_stores import POINT, Wide, Writer, program
from tests.reverse.test_places import PROGRAMS as PLACES
from tests.reverse.test_places import X


@pytest.fixture
def poison(monkeypatch):
    """Let every store that is not undone leave NaN; answer how many did."""
    restore = Control._restore
    count = [0]

    def poisoned(self, op):
        target = target_of(op)
        if self.is_restored(op) or target.array.type.dtype.kind != "f":
            restore(self, op)
            return
        count[0] += 1
        self.recorder.store(Symbol(target.array, self.recorder), self.symbols(target.at), np.nan)

    def all_results(self):
        return [k for k, r in enumerate(self.results) if isinstance(r, Value) and is_array(r)]

    monkeypatch.setattr(Control, "_restore", poisoned)
    monkeypatch.setattr(Pullback, "restored_results", all_results)
    return count


def check(f, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = fwdad.jacobian(f, x, mode="forward")
        found = fwdad.jit(fwdad.grad(f), backend="numpy")(x)
    scale = np.max(np.abs(expected))
    assert_allclose(found, expected, rtol=1e-8, atol=1e-10 * (1 + scale))


@pytest.mark.parametrize(("f", "x"), [*PROGRAMS, *((f, X) for f in PLACES)])
def test_programs(poison, f, x):
    check(f, x)


def test_random_programs(poison):
    for seed in range(40):
        check(program(seed, Wide if seed % 2 else Writer)[0], POINT)
    assert poison[0] > 100


def test_what_is_not_put_back_and_read_shows(poison, monkeypatch):
    """With an analysis that finds nothing to put back, the answers are NaN."""
    monkeypatch.setattr(Pullback, "needed", lambda _: set())
    wrong = 0
    for seed in range(20):
        try:
            check(program(seed, Writer)[0], POINT)
        except (AssertionError, UntraceableError):
            wrong += 1
    assert wrong >= 10
