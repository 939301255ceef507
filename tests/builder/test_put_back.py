"""What hangs on an object in C is put back, too, where a derivative is refused."""

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
    with pytest.raises(fwdad.FwdadError):
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


exec("def added_unseen():\n    global ADDED\n    ADDED = 2.0", globals())


def test_what_code_without_a_source_adds_to_a_module_stays():
    """As a library's caches do, which functions that are kept elsewhere may need."""

    def f(x):
        globals().update(FOUND=1.0)
        added_unseen()  # noqa: F821
        return np.sum(np.array([x[0]], dtype=object).astype(int))

    with pytest.raises(fwdad.FwdadError):
        fwdad.jvp(f, X, X)
    assert globals()["ADDED"] == 2.0
