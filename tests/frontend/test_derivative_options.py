"""`has_aux`, `outputs` and `stack` of derivatives that are traced: as those that run at once."""

import copy

import numpy as np
import pytest

import fwdad
from tests.differences import central_differences

X = np.array([1.0, 2.0, 3.0])
D = {"p": 2.0, "q": np.array([1.0, 2.0])}


def scalar(x):
    return np.sum(x**2), {"n": x[0] * 2, "k": 3}


def array(x, a=2.0):
    return np.sin(x), x[0] * a


def structured(d):
    return {"a": d["p"] ** 2, "b": np.sum(d["q"]) * d["p"]}


def in_place(x):
    x[0] = x[1] * x[0]
    return np.sum(x)


def two(a, b):
    return a * b, np.sum(b)


def two_and_more(a, b):
    return two(a, b), (a, "text")


def in_place_and_more(x):
    return in_place(x), x[1] * 3


CASES = {
    "grad": (fwdad.grad(scalar, has_aux=True), X),
    "value_and_grad": (fwdad.value_and_grad(scalar, has_aux=True), X),
    "jacfwd": (fwdad.jacfwd(array, has_aux=True), X),
    "jacrev": (fwdad.jacrev(array, has_aux=True), X),
    "jvp": (lambda x: fwdad.jvp(array, x, x + 1, has_aux=True), X),
    "jvp of a basis": (lambda x: fwdad.jvp(array, x, has_aux=True), X),
    "value_and_jacobian": (lambda x: fwdad.value_and_jacobian(array, x, has_aux=True), X),
    "second order": (fwdad.jacfwd(fwdad.grad(scalar, has_aux=True), has_aux=True), X),
    "stacked": (fwdad.jacfwd(structured, stack=True), D),
    "stacked rows": (fwdad.jacrev(structured, stack=True), D),
    "stacked, with the value": (lambda d: fwdad.value_and_jacobian(structured, d, stack=True), D),
    "stacked argnums": (fwdad.jacfwd(two, argnums=(0, 1), stack=True), X, X + 1),
    "all": (fwdad.jacfwd(two_and_more, argnums=(1, 0), stack=True, has_aux=True), X, X + 1),
    "stacked matrix": (fwdad.jacfwd(np.square, stack=True), np.ones((2, 2))),
    "mutated": (fwdad.jacfwd(in_place, outputs="mutated"), X),
    "both": (lambda x: fwdad.value_and_jacobian(in_place, x, outputs="both"), X),
    "jvp of what is mutated": (lambda x: fwdad.jvp(in_place, x, x + 1, outputs="mutated"), X),
    "both, with aux": (fwdad.jacfwd(in_place_and_more, outputs="both", has_aux=True), X),
}


def compare(a, b):
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        a, b = tuple(a.values()), tuple(b.values())
    if isinstance(a, tuple):
        for one, other in zip(a, b, strict=True):
            compare(one, other)
    elif isinstance(a, str):
        assert a == b
    else:
        np.testing.assert_allclose(a, b, rtol=1e-14)


@pytest.mark.parametrize("name", CASES)
def test_traced_derivatives_have_the_options(name):
    f, *args = CASES[name]
    given = copy.deepcopy(args)
    compare(fwdad.jit(f, backend="numpy")(*given), f(*copy.deepcopy(args)))
    compare(given[0], args[0])  # what is differentiated is not written


def test_complex_steps_do_not_look_at_what_comes_beside():
    def f(z):
        return z * z, np.abs(z)

    g = fwdad.jacfwd(f, has_aux=True, holomorphic=True)
    z = np.array([1.0 + 2.0j, 0.5j])
    compare(fwdad.jit(g, backend="numpy")(z), g(z))


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (fwdad.jacfwd(np.sin, has_aux=True), r"must return \(y, aux\)"),
        (fwdad.grad(np.sum, has_aux=True), r"must return \(y, aux\)"),
        (fwdad.grad(lambda x: (np.sum(x), 1, 2), has_aux=True), r"must return \(y, aux\)"),
        (fwdad.jacfwd(np.sin, outputs="mutated"), "into none of its arguments"),
        (fwdad.jacfwd(lambda x: None), "returned None"),
    ],
)
def test_what_is_not_there_is_named(f, said):
    with pytest.raises(fwdad.errors.NoOutputError, match=said):
        fwdad.jit(f, backend="numpy")(X)
    with pytest.raises(fwdad.errors.NoOutputError):
        f(X)


def test_what_is_written_and_not_differentiated_is_refused():
    def into_both(x, y):
        x[0] = y[0]
        y[0] = x[1]

    with pytest.raises(fwdad.errors.UntraceableError, match="written and not differentiated"):
        fwdad.jit(fwdad.jacfwd(into_both, outputs="mutated"), backend="numpy")(X + 0, X + 0)


def test_there_is_no_other_kind_of_outputs():
    with pytest.raises(ValueError, match="outputs must be"):
        fwdad.jit(fwdad.jacfwd(in_place, outputs="other"), backend="numpy")(X)


def test_compiled():
    compare(fwdad.jit(CASES["all"][0], backend="numba")(X, X + 1), CASES["all"][0](X, X + 1))


@pytest.mark.parametrize("argnums", [(0, 0), (0, -2), (0, 5), 2, 1.5, None])
@pytest.mark.parametrize("derive", [fwdad.grad, fwdad.jacfwd, fwdad.jacrev, fwdad.value_and_grad])
def test_argnums_are_checked(derive, argnums):
    """Two of one argument had halves of its gradient: all, and zeros."""

    def f(x, y):
        return np.sum(x * y)

    with pytest.raises(fwdad.errors.UnsupportedTypeError, match="argnums"):
        fwdad.jit(derive(f, argnums=argnums), backend="numpy")(np.ones(3), np.ones(3))


def test_argnums_of_numpy():
    def f(x, y):
        return np.sum(x * y)

    found = fwdad.jit(fwdad.grad(f, argnums=np.int64(-1)), backend="numpy")(X, 2 * X)
    np.testing.assert_array_equal(found, X)


def of_a_local_function(x):
    return np.sum(fwdad.jacobian(lambda y: y * x * np.sum(y))(x) @ x)


def of_a_local_function_with_its_value(x):
    y, slopes = fwdad.value_and_jacobian(lambda y, c: y * x * c)(x, 2.0)
    return np.sum(slopes @ y)


def of_a_local_function_of_a_number(x):
    return fwdad.derivative(lambda t: t**3 * x[0])(x[1])


@pytest.mark.parametrize(
    "f",
    [of_a_local_function, of_a_local_function_with_its_value, of_a_local_function_of_a_number],
)
def test_the_derivative_of_a_local_function_is_called_later(f):
    expected = central_differences(f, X)
    for transform in (fwdad.grad, fwdad.jacfwd, fwdad.jacrev):
        np.testing.assert_allclose(transform(f)(X), expected, rtol=1e-6, atol=1e-6)
        found = fwdad.jit(transform(f), backend="numpy")(X)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
