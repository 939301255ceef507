"""The parts of an index: truth values, which take no axis and make one, and empty arrays."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

X = np.array([[0.3, 0.2, 1.1, 0.5], [0.7, -0.4, 0.9, 0.1], [1.2, 0.6, -0.8, 0.4]])
INDICES = {
    "m": lambda m: m,
    "m, 1:": lambda m: (m, slice(1, None)),
    "1:, m": lambda m: (slice(1, None), m),
    "..., m": lambda m: (..., m),
    "m, None, 1": lambda m: (m, None, 1),
    "m, :, 2": lambda m: (m, slice(None), 2),
    "1, m": lambda m: (1, m),
    "m, m, ::2": lambda m: (m, m, slice(None, None, 2)),
    "m, [2, 0]": lambda m: (m, [2, 0]),
}
MASKS = {"number": lambda t: t > 0.0, "array": lambda t: np.asarray(t > 0.0)}


def read(x, index, mask):
    return np.sin(x)[index(mask(x[0, 0]))] * x[0, 1]


def written(x, index, mask):
    y = x * x
    at = index(mask(x[0, 0]))
    y[at] = np.cos(x)[at] * x[1, 1]
    y[at] *= 3.0
    return y


def row(x, index, mask):  # y[m] has one axis more than what is stored
    y = np.zeros_like(x)
    y[index(mask(x[0, 0]))] = x[2, 3] * x[0, 3]
    e = np.exp(x[0, 0])
    return y, e[mask(x[0, 1]), None] * x[1]


def joined(y):
    parts = y if isinstance(y, tuple) else (y,)
    return np.concatenate([np.ravel(p) for p in parts])


def cases():
    for program in (read, written, row):
        for name, index in INDICES.items():
            for kind, mask in MASKS.items():
                if kind == "array" and name not in ("m, 1:", "1:, m"):
                    continue
                label = f"{program.__name__}-{name}-{kind}"
                refused = name == "m, [2, 0]"  # of no element, and of two: NumPy raises
                yield pytest.param(program, index, mask, refused, id=label)


@pytest.mark.every(2)
@pytest.mark.parametrize(("program", "index", "mask", "refused"), list(cases()))
def test_truth_values_as_indices_are_right(program, index, mask, refused):
    def f(x):
        return joined(program(x, index, mask))

    for x in (X, -X):
        if refused and x is not X:
            with pytest.raises(IndexError):
                f(x)
            continue
        wanted = central_differences(f, x)
        for mode, chunk in (("forward", 5), ("reverse", None)):
            found = fwdad.jacobian(f, x, mode=mode, chunk=chunk)
            assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)
        tape = fwdad.trace(lambda x: fwdad.jacobian(f, x, mode="forward"), x)
        assert_allclose(tape(x), wanted, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("chunk", [1, 2, 3])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_truth_values_as_indices_are_right_in_chunks(mode, chunk):
    def f(x):
        return joined(written(x, INDICES["m, 1:"], MASKS["number"]))

    found = fwdad.jacobian(f, X, mode=mode, chunk=chunk)
    assert_allclose(found, central_differences(f, X), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("program", "name"),
    [
        (row, "m"),
        *(
            pytest.param(p, n, marks=pytest.mark.slow)
            for p in (read, written)
            for n in ("m", "1:, m")
        ),
    ],
)
def test_compiled_truth_values_as_indices_are_right(program, name):
    pytest.importorskip("numba")

    def f(x):
        return joined(program(x, INDICES[name], MASKS["number"]))

    value = fwdad.jit(f)
    forward = fwdad.jit(lambda x: fwdad.jacobian(f, x, mode="forward"))
    reverse = fwdad.jit(lambda x: fwdad.jacobian(f, x, mode="reverse"))
    for x in (X, -X):
        assert_allclose(value(x), f(x), rtol=1e-14)
        wanted = central_differences(f, x)
        assert_allclose(forward(x), wanted, rtol=1e-8, atol=1e-8)
        assert_allclose(reverse(x), wanted, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("at", [np.add.at, np.subtract.at, np.multiply.at])
@pytest.mark.parametrize("rest", [(), (slice(1, None),)])
def test_updates_at_truth_values(at, rest):
    def f(x):
        y = x * x
        at(y, (x[0] > 0, *rest), x[1])
        return y

    for x in (X[0], -X[0]):
        wanted = central_differences(f, x)
        for call in (fwdad.jacfwd, fwdad.jacrev):
            compiled = fwdad.jit(call(f), backend="numpy")
            assert_allclose(compiled(x), wanted, rtol=1e-8, atol=1e-8)
            assert_allclose(call(f)(x), wanted, rtol=1e-8, atol=1e-8)


def test_a_fill_value_that_becomes_whole_is_refused():
    def f(x):
        return np.sum(np.full_like(x, x[0] * 3, dtype=int) * x)

    for call in (fwdad.grad(f), fwdad.jit(fwdad.grad(f), backend="numpy"), fwdad.jacfwd(f)):
        with pytest.raises(fwdad.errors.DualLeakError):
            call(X[0])
    grown = fwdad.grad(lambda x: np.sum(np.full_like(x, 3, dtype=int) * x))
    assert_allclose(grown(X[0]), 3.0)


def masked(x):
    y = x * 2
    y[y > 0.1] *= 3
    return np.sum(y * x)


def masked_columns(x):
    y = np.outer(x, x)
    y[:, x > 0.1] *= 0.5
    return np.sum(y)


def masked_table(x):
    y = np.outer(x, x)
    y[y > 0.1] = 0.5
    return np.sum(y)


def sorted_sum(x):
    return np.sum(x[np.argsort(x)] ** 2)


@pytest.mark.parametrize("f", [masked, masked_columns, masked_table, sorted_sum])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_empty_arrays_have_elements_selected(f, backend):
    """An axis that an index array takes does not count: a sample of it has an element."""
    if backend == "numba":
        pytest.importorskip("numba")
    for x in (np.zeros(0), np.array([0.4, 0.9, -0.3])):
        expected = central_differences(f, x)
        for way in (fwdad.grad, fwdad.jacfwd):
            assert_allclose(way(f)(x), expected, rtol=1e-8, atol=1e-8)
            found = fwdad.jit(way(f), backend=backend)(x)
            assert found.shape == x.shape
            assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("at", [np.array([0, 1]), [0]])
def test_empty_arrays_have_no_elements(at):
    for f in (lambda x: np.sum(x[at] ** 2), lambda x: np.sum(np.outer(x, x)[0][at])):
        for way in (f, fwdad.grad(f), fwdad.jit(f), fwdad.jit(fwdad.grad(f))):
            with pytest.raises(IndexError, match="out of bounds for axis 0 with size 0"):
                way(np.zeros(0))
