"""What is not restored is read by nobody: in the reverse pass it is overwritten with NaN."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import UntraceableError
from fwdad.ir.ops import Store, Value, is_array
from fwdad.transforms.reverse import pull
from fwdad.transforms.reverse.memory import Memory
from fwdad.transforms.reverse.pull import Pullback
from fwdad.transforms.reverse.rematerialize import Resolver
from fwdad.transforms.reverse.restores import Restores
from tests.transforms.reverse.programs import PROGRAMS
from tests.transforms.reverse.random_stores import POINT, Wide, Writer, program
from tests.transforms.reverse.test_array_phis import PROGRAMS as PLACES
from tests.transforms.reverse.test_array_phis import X


class Poison:
    """Lets every store that is not undone leave NaN, but where what it has written is read.

    Attributes
    ----------
    on : bool
        While it is off, it notes what is read.
    read : set of Location
        The stores whose new content the reverse pass reads: they have to leave it.
    count : int
        How many stores left NaN.
    """

    def __init__(self, monkeypatch):
        self.on, self.read, self.count = False, set(), 0
        take_out, of_new_content = Restores.take_out, Memory._of_new_content
        stored = Resolver._stored

        def poisoned(restores, restored):
            for restore in list(restores._written):
                (op, *others), store = restore.stores, restore.ops[-1]
                if others or op in restored or not isinstance(store, Store):
                    continue
                if self.on and op.location not in self.read and store.array.type.dtype.kind == "f":
                    self.count += 1
                    store.value = np.nan
                    restores._written.remove(restore)
            take_out(restores, restored)

        def noted_content(memory, op, *given):
            found = of_new_content(memory, op, *given)
            if found is not None:
                self.read.add(op.location)
            return found

        def noted_stored(resolver, v):
            found = stored(resolver, v)
            if found is not None:
                self.read.add(found[-1].location)
            return found

        def all_results(writer):
            results = enumerate(writer.results)
            return [k for k, r in results if isinstance(r, Value) and is_array(r)]

        monkeypatch.setattr(Restores, "take_out", poisoned)
        monkeypatch.setattr(Memory, "_of_new_content", noted_content)
        monkeypatch.setattr(Resolver, "_stored", noted_stored)
        monkeypatch.setattr(Pullback, "restored_results", all_results)

    def gradient(self, f, x):
        """The gradient, once without and once with NaN; the second."""
        self.on, self.read = False, set()
        fwdad.jit(fwdad.grad(lambda z: f(z)), backend="numpy")(x)
        self.on = True
        return fwdad.jit(fwdad.grad(f), backend="numpy")(x)


@pytest.fixture
def poison(monkeypatch):
    return Poison(monkeypatch)


def check(poison, f, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = fwdad.jacobian(f, x, mode="forward")
        found = poison.gradient(f, x)
    scale = np.max(np.abs(expected))
    assert_allclose(found, expected, rtol=1e-8, atol=1e-10 * (1 + scale))


@pytest.mark.every(2)
@pytest.mark.parametrize(("f", "x"), [*PROGRAMS, *((f, X) for f in PLACES)])
def test_programs(poison, f, x):
    check(poison, f, x)


@pytest.mark.parametrize("count", [4, pytest.param(40, marks=pytest.mark.slow)])
def test_random_programs(poison, count):
    for seed in range(count):
        check(poison, program(seed, Wide if seed % 2 else Writer)[0], POINT)
    assert poison.count > count


@pytest.mark.slow
def test_what_is_not_put_back_and_read_shows(poison, monkeypatch):
    """With an analysis that finds nothing to restore, the results are NaN."""
    monkeypatch.setattr(pull, "to_be_recorded", lambda *_: set())
    wrong = 0
    for seed in range(20):
        try:
            check(poison, program(seed, Writer)[0], POINT)
        except (AssertionError, UntraceableError):
            wrong += 1
    assert wrong >= 10
