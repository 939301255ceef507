"""``sparse=True``: the pattern is found, coloured, and found again by the next call."""

import pickle

import numpy as np
import pytest

import fwdad
from fwdad.drivers.sparse import detection
from fwdad.errors import UnsupportedTypeError, UntraceableError
from tests.drivers.sparse import programs

RNG = np.random.default_rng(7)
CASES = [
    (programs.burgers, RNG.random(13)),
    (programs.written_in_loops, RNG.random(13)),
    (programs.bratu, RNG.random((4, 5))),
    (programs.arrow, RNG.random(9)),
    (programs.wide, RNG.random(8)),
    (programs.scattered, RNG.random(10)),
    (programs.undoable, RNG.random(8)),
    (lambda x: programs.MATRIX @ x, RNG.random(12)),
    (lambda x: programs.DENSE @ x, RNG.random(10)),
]


@pytest.fixture
def traced(monkeypatch):
    """The questions for which a function was traced."""
    asked = []
    found = detection._found

    def counted(question, *rest):
        asked.append(question)
        return found(question, *rest)

    monkeypatch.setattr(detection, "_found", counted)
    return asked


@pytest.mark.every(9, of="jit")
@pytest.mark.parametrize("jit", [lambda f: f, fwdad.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
@pytest.mark.parametrize(("f", "x"), CASES)
def test_jacobians(f, x, mode, jit):
    J = fwdad.jacobian(jit(f), x, sparse=True, mode=mode)
    wanted = fwdad.jacobian(f, x, mode="forward").reshape(-1, x.size)
    np.testing.assert_allclose(J.toarray(), wanted, rtol=1e-13, atol=1e-14)
    if f is not CASES[-1][0]:
        assert J.nnz == np.count_nonzero(wanted)


@pytest.mark.every(2, of="jit")
@pytest.mark.parametrize("jit", [lambda f: f, fwdad.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("f", [programs.rosenbrock, programs.with_arrow])
def test_hessians(f, jit):
    x = RNG.random(9)
    wanted = fwdad.hessian(f, x)
    H = fwdad.hessian(jit(f), x, sparse=True, format="csc")
    np.testing.assert_allclose(H.toarray(), wanted, rtol=1e-11, atol=1e-11)
    assert H.nnz == np.count_nonzero(wanted)
    np.testing.assert_allclose(fwdad.hessian(f, sparse=True)(x).toarray(), wanted, atol=1e-11)


@pytest.mark.every(4, first=1)
@pytest.mark.parametrize(("f", "x"), CASES[:4])
def test_in_a_traced_function(f, x):
    J = fwdad.jit(lambda x: fwdad.jacobian(f, x, sparse=True))
    of = fwdad.jit(fwdad.jacrev(f, sparse=True))
    for at in (x, x + 0.5, x[1:], x):
        wanted = fwdad.jacobian(f, at, mode="forward").reshape(-1, at.size)
        np.testing.assert_allclose(J(at).toarray(), wanted, rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(of(at).toarray(), wanted, rtol=1e-13, atol=1e-14)


def test_hessian_in_a_traced_function():
    x = RNG.random(9)
    H = fwdad.jit(lambda x: fwdad.hessian(programs.rosenbrock, x, sparse=True))
    for at in (x, x[2:]):
        wanted = fwdad.hessian(programs.rosenbrock, at)
        np.testing.assert_allclose(H(at).toarray(), wanted, rtol=1e-11, atol=1e-11)


def test_found_once_for_each_shape(traced):
    J = fwdad.jacfwd(lambda x: x[1:] * x[:-1], sparse=True)
    for n in (4, 4, 5, 4, 5):
        x = RNG.random(n)
        assert J(x).shape == (n - 1, n)
    assert len(traced) == 2


def gathered(x, places, scale):
    return scale * x[places] ** 2


def test_found_anew_for_other_indices(traced):
    x = RNG.random(5)
    for places in ([0, 1], [0, 1], [3, 4], [0, 1]):
        args = np.array(places), RNG.random()
        J = fwdad.jacobian(gathered, x, args=args, sparse=True, mode="forward")
        wanted = fwdad.jacobian(gathered, x, args=args)
        np.testing.assert_allclose(J.toarray(), wanted, rtol=1e-14)
    assert len(traced) == 2


HELD = np.array([2, 0])


def held(x):
    return x[HELD] ** 2


def test_found_anew_for_other_indices_from_outside():
    x = RNG.random(3)

    for first in (2, 1, 0):
        HELD[0] = first
        J = fwdad.jacobian(held, x, sparse=True)
        np.testing.assert_allclose(J.toarray(), fwdad.jacobian(held, x), rtol=1e-14)


def stepped(x, flag, limit):
    if flag:
        x = x[::-1]
    y = x * 2
    if limit > 0.5:
        y[0] = x[1]
    return y


def test_arrays_outside_that_share_memory():
    first = np.ones(3)
    others = {"other": np.ones(3)}

    def f(x):
        first[0] = 2.0 * x[0]
        return others["other"] * x

    x = np.array([0.4, 0.8, 1.3])
    for other in (np.ones(3), first[::-1], np.ones(3), first):
        others["other"] = other
        wanted = fwdad.jacobian(f, x, mode="forward")
        for _ in range(2):
            np.testing.assert_array_equal(fwdad.jacobian(f, x, sparse=True).toarray(), wanted)
    others["other"] = first[::-1]  # met first

    def g(x):
        return f(x) * x

    wanted = fwdad.jacobian(g, x, mode="forward")
    assert wanted[2, 0] != 0.0
    np.testing.assert_array_equal(fwdad.jacobian(g, x, sparse=True).toarray(), wanted)


def test_floats_are_any_and_ints_are_those_of_now():
    x = RNG.random(3)
    for flag in (True, False):
        for limit in (0.2, 0.8):
            args = flag, limit
            pattern = fwdad.jacobian_sparsity(stepped, x, args=args).toarray()
            wanted = np.eye(3, dtype=bool)
            wanted[0, 1] = True
            assert np.array_equal(pattern, wanted[:, ::-1] if flag else wanted)
            here = fwdad.jacobian_sparsity(stepped, x, kind="local", args=args).toarray()
            assert np.array_equal(here, fwdad.jacobian(stepped, x, args=args) != 0)


def test_other_arguments():
    x, t = RNG.random(6), 2.0

    def f(t, x, s=1.0):
        return t * s * x**2, t

    options = {"argnums": 1, "args": (x,), "has_aux": True}
    assert np.array_equal(fwdad.jacobian_sparsity(f, t, **options).toarray(), np.eye(6))
    J, aux = fwdad.jacobian(f, t, sparse=True, kwargs={"s": 3.0}, **options)
    assert aux == t
    np.testing.assert_allclose(J.toarray(), np.diag(12 * x))
    of_number = fwdad.jacobian_sparsity(f, t, args=(x,), has_aux=True)
    assert np.array_equal(of_number.toarray(), np.ones((6, 1)))


class Model:
    """A method, which reads an attribute."""

    def __init__(self):
        self.gain, self.shift = 2.0, 1

    def residual(self, x):
        return self.gain * x[self.shift :] * x[: -self.shift]


def test_methods(traced):
    model, x = Model(), RNG.random(5)
    for gain, shift, count in ((2.0, 1, 1), (2.0, 1, 1), (3.0, 1, 1), (3.0, 2, 2)):
        model.gain, model.shift = gain, shift
        J = fwdad.jacobian(model.residual, x, sparse=True)
        np.testing.assert_allclose(J.toarray(), fwdad.jacobian(model.residual, x), rtol=1e-14)
        assert len(traced) == count


@pytest.mark.every(3, of="jit", first=2)
@pytest.mark.parametrize("jit", [lambda f: f, fwdad.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
def test_nothing_to_differentiate(mode, jit):
    for shape in ((0,), (0, 3)):
        J = fwdad.jacobian(jit(lambda x: x * 2), np.zeros(shape), sparse=True, mode=mode)
        assert J.shape == (0, 0)
    assert fwdad.jacobian(jit(lambda x: x[:0]), np.ones(3), sparse=True, mode=mode).shape == (0, 3)


@pytest.mark.every(2)
@pytest.mark.parametrize("x", [RNG.random((4, 6))[:, ::2], np.asfortranarray(RNG.random((4, 3)))])
def test_other_layouts(x):
    f = lambda x: (x.T * x.sum(axis=0)[:, None]).reshape(-1)[::2]  # noqa: E731
    for jit in (lambda f: f, fwdad.jit):
        J = fwdad.jacobian(jit(f), x, sparse=True)
        wanted = fwdad.jacobian(f, x).reshape(-1, x.size)
        np.testing.assert_allclose(J.toarray(), wanted, rtol=1e-13)


def test_a_number_that_depends_on_nothing():
    assert fwdad.jacobian_sparsity(lambda x: 3.0, RNG.random(4)).shape == (1, 4)
    assert fwdad.jacobian(lambda x: x[1] * 1.0, RNG.random(4), sparse=True).nnz == 1


def test_nothing_is_written():
    x = RNG.random(4)
    before = x.copy()

    def f(x):
        x[1:] *= x[:-1]
        return x * 1

    for kind in ("global", "local"):
        pattern = fwdad.jacobian_sparsity(f, x, kind=kind)
        assert np.array_equal(pattern.toarray(), np.eye(4) + np.eye(4, k=-1))
    assert np.array_equal(x, before)


def test_refusals():
    x = RNG.random(4)
    with pytest.raises(UntraceableError, match="made in the traced function"):
        fwdad.jit(lambda x: fwdad.jacobian(lambda y: y * x[0], x, sparse=True))(x)
    with pytest.raises(UntraceableError, match="depends on ints"):
        fwdad.jit(lambda x: fwdad.jacobian(gathered, x, args=(x.argsort(), 1.0), sparse=True))(x)
    with pytest.raises(UntraceableError, match=r"Pass a pattern: sparse=pattern"):
        fwdad.jacobian(lambda x: eval("x * 2"), np.ones(1001), sparse=True)
    with pytest.raises(UnsupportedTypeError, match="one array"):
        fwdad.jacobian_sparsity(lambda x: (x, x), x)
    with pytest.raises(UnsupportedTypeError, match="one array"):
        fwdad.jacobian_sparsity(lambda p: p[0], (x, x))
    with pytest.raises(UnsupportedTypeError, match="one argument"):
        fwdad.jacobian_sparsity(lambda x, y: x, x, args=(x,), argnums=(0, 1))
    with pytest.raises(UnsupportedTypeError, match="outputs="):
        fwdad.jacobian(programs.burgers, x, sparse=True, outputs="mutated")
    with pytest.raises(ValueError, match="kind must be"):
        fwdad.jacobian_sparsity(programs.burgers, x, kind="dense")


def test_what_cannot_be_traced_is_full():
    f = lambda x: eval("x[1:] * x[:-1]")  # noqa: E731
    x = RNG.random(6)
    pattern = fwdad.jacobian_sparsity(f, x)
    assert pattern.nnz == 30
    assert "cannot be traced: eval" in pattern.dense[0]
    for mode in ("auto", "forward"):
        J = fwdad.jacobian(f, x, sparse=True, mode=mode)
        np.testing.assert_allclose(J.toarray(), fwdad.jacobian(f, x))
    H = fwdad.hessian(lambda x: eval("np.sum(x**3)"), x, sparse=True)
    np.testing.assert_allclose(H.toarray(), np.diag(6 * x))
    with pytest.raises(UntraceableError, match="Pass a pattern"):
        fwdad.jacobian(lambda x: eval("[x, x]"), x, sparse=True)


def test_lengths_that_are_counts_outside(monkeypatch):
    """np.pad of a grid whose width is a name of the module has lengths that are only computed."""
    monkeypatch.setitem(globals(), "WIDTH", 4)

    def f(u):
        wide = np.pad(u.reshape(WIDTH, WIDTH), 1)
        return (wide[2:, 1:-1] + wide[1:-1, :-2]).ravel()

    pattern = fwdad.jacobian_sparsity(f, np.ones(16))
    assert pattern.dense == ()
    assert pattern.nnz == 24


WIDTH = 4
WEIGHTS, COUNT, PLACES = np.array([1.0, 2.0]), 2, np.array([0, 1, 2, 3, 4, 5])


def weighted(x):
    out = np.zeros_like(x)
    for k in range(len(WEIGHTS)):
        out[k:] += WEIGHTS[k] * x[: len(x) - k] ** 2
    return out


def repeated(x):
    out = np.zeros_like(x)
    for k in range(COUNT):
        out[k:] += x[: len(x) - k] ** 2
    return out


def permuted(x):
    return x[PLACES] ** 2


@pytest.mark.every(2, first=1)
@pytest.mark.parametrize("f", [weighted, repeated, permuted], ids=lambda f: f.__name__)
@pytest.mark.parametrize("jit", ["inside", "outside"])
def test_what_is_read_from_outside_may_change(f, jit, monkeypatch):
    """A compiled Jacobian finds a new pattern where a length, an int or an index is another one."""
    x = np.arange(1.0, 7)
    if jit == "inside":
        J = fwdad.jacobian(fwdad.jit(f), sparse=True)
    else:
        J = fwdad.jit(fwdad.jacobian(f, sparse=True))
    wanted = {"WEIGHTS": np.array([1.0, 2, 3]), "COUNT": 3, "PLACES": np.array([5, 1, 2, 3, 4, 5])}
    for changed in ({}, wanted):
        for name, value in changed.items():
            monkeypatch.setitem(globals(), name, value)
        for at in (x, x + 1, x + 2):
            np.testing.assert_allclose(J(at).toarray(), fwdad.jacobian(f, at), rtol=1e-13)
    PLACES[0] = 3  # in place
    np.testing.assert_allclose(J(x).toarray(), fwdad.jacobian(f, x), rtol=1e-13)


def test_a_tape_with_a_pattern_is_pickled():
    """With what the pattern depends on outside: an array's lengths, and an int."""
    x = np.arange(1.0, 7)
    for f in (weighted, repeated, permuted):
        tape = fwdad.trace(fwdad.jacobian(f, sparse=True), x)
        again = pickle.loads(pickle.dumps(tape))
        np.testing.assert_allclose(again(x).toarray(), fwdad.jacobian(f, x))


def test_indices_that_are_too_many_to_be_compared():
    f = lambda x: x[MANY] ** 2  # noqa: E731
    x = np.ones(MANY.size)
    with pytest.raises(UntraceableError, match="more elements than can be compared"):
        fwdad.jit(fwdad.jacobian(f, sparse=True))(x)
    J = fwdad.jacobian(fwdad.jit(f), x, sparse=True)
    assert J.nnz == MANY.size


MANY = np.arange(200_000)
