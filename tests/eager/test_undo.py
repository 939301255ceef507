"""What hangs on an object in C is restored, too, where a derivative is refused."""

import sys
import types

import numpy as np
import pytest

import fwdad


class Before:
    pass


class After(Before):
    pass


def changed(x, extra=2.0):
    """One."""
    return x * extra


def other(x, extra=2.0):
    """Two."""
    return x + extra


HELD = Before()
X = np.array([1.0, 2.0])
WAYS = {
    "jvp": lambda f: fwdad.jvp(f, X, X),
    "chunks": lambda f: fwdad.jacobian(f, X, mode="forward", chunk=1),
    "grad": lambda f: fwdad.grad(f)(X),
}


def state():
    return (type(HELD), changed.__code__, changed.__defaults__, changed.__doc__, changed.__name__)


def change():
    HELD.__class__ = After
    changed.__code__ = other.__code__
    changed.__defaults__ = (7.0,)
    changed.__doc__ = other.__doc__
    changed.__name__ = "other"


@pytest.mark.parametrize("way", WAYS)
def test_a_refusal_leaves_it_as_it_was(way):
    def f(x):
        change()
        return np.sum(np.array([x[0]], dtype=object).astype(int))

    before = state()
    with pytest.raises(fwdad.errors.FwdadError):
        WAYS[way](f)
    assert state() == before


def test_each_chunk_begins_alike():
    kinds = []

    def f(x):
        kinds.append((type(HELD), changed(1.0)))
        change()
        return x * changed(1.0)

    before = state()
    try:
        assert np.array_equal(fwdad.jacobian(f, X, mode="forward", chunk=1), 8.0 * np.eye(2))
        assert kinds == [(Before, 2.0)]
        assert type(HELD) is After
    finally:
        HELD.__class__, changed.__code__, changed.__defaults__ = before[:3]
        changed.__doc__, changed.__name__ = before[3:]
    assert state() == before


def test_what_code_without_a_source_adds_to_a_library_stays(monkeypatch):
    """As its caches do, which functions that are kept elsewhere may need."""
    library = types.ModuleType("a_library")
    library.__file__ = "/nowhere/site-packages/a_library.py"
    monkeypatch.setitem(sys.modules, "a_library", library)
    exec("def add():\n    global ADDED\n    ADDED = 2.0", vars(library))

    def f(x):
        vars(library).update(FOUND=1.0)
        library.add()
        return np.sum(np.array([x[0]], dtype=object).astype(int))

    with pytest.raises(fwdad.errors.FwdadError):
        fwdad.jvp(f, X, X)
    assert library.ADDED == 2.0


class Slotted:
    __slots__ = ("hidden", "kept")


class Hiding(Slotted):
    """As paths of Python 3.13 do."""

    __slots__ = ()

    @property
    def hidden(self):
        return self.kept


def test_a_slot_that_a_property_hides_is_not_put_back():
    held = Hiding()
    held.kept = 1.0

    def f(x):
        held.kept = held.kept + 1.0
        return x * held.hidden

    assert np.array_equal(fwdad.jacobian(f, X, mode="forward", chunk=1), 2.0 * np.eye(2))
    assert held.kept == 2.0
