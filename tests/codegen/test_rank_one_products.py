"""Products with matrices whose rows or columns are all the same are formed with one of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.codegen.numpy_backend.source import defined, numpy_source
from fwdad.codegen.passes.rank_one_products import multiply_one_row
from fwdad.ir.check import checked


def one(a, b, c):
    return np.sum(a @ b)


def chain(a, b, c):
    return np.mean(3.0 * a @ b @ c)


def of_the_right(a, b, c):
    return np.sum(b @ a @ c)


def both(a, b, c):
    return np.sum(a @ b) * np.mean(b @ a) + np.sum(np.sin(a @ b @ c))


def in_a_loop(a, b, c):
    total = 0.0
    for k in range(3):
        total = total + (k + 1.0) * np.sum(a @ b) + np.sum((a @ c) ** 2)
    return total


def stored(a, b, c):
    """The constant is stored into before it is multiplied with."""
    out = np.zeros((a.shape[0], b.shape[1]))
    out[...] = a @ b
    out[0] *= c[0]
    return np.sum(out)


def rows(a, b, c):
    return np.sum(np.sum(a @ b, axis=1) ** 2)


def columns(a, b, c):
    return np.sum(np.mean(c @ a @ b, axis=0) ** 3) + np.sum(np.sum(b @ a, axis=1) * c[0])


PROGRAMS = [rows, columns, one, chain, of_the_right, both, in_a_loop, stored]


def products(f, *args):
    """How many products a gradient has, and its source."""
    lines = fwdad.show(fwdad.grad(f), *args).splitlines()
    source = "\n".join(line.partition("#")[0] for line in lines)
    return source.count("@"), source


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients_are_those_of_forward_mode(f, n):
    rng = np.random.default_rng(n)
    args = [rng.normal(size=(n, n)) for _ in range(3)]
    expected = fwdad.jacobian(lambda a: f(a, *args[1:]), args[0], mode="forward")
    found = fwdad.grad(f)(*args)
    assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    found += 1.0  # it is an array of its own


@pytest.mark.parametrize(
    "shapes", [(2, 3, 4, 5), (1, 3, 1, 2), (3, 1, 2, 1), (0, 2, 3, 4)], ids=str
)
def test_other_lengths(shapes):
    m, k, n, p = shapes
    rng = np.random.default_rng(0)
    args = rng.normal(size=(m, k)), rng.normal(size=(k, n)), rng.normal(size=(n, p))

    def f(a, b, c):
        return np.sum(a @ b @ c)

    for which in range(3):
        gradient = fwdad.grad(f, which)(*args)
        x = args[which]
        moved = []
        for place in np.ndindex(x.shape):
            other = list(args)
            other[which] = x.copy()
            other[which][place] += 1.0  # f is linear in each
            moved.append(f(*other) - f(*args))
        assert_allclose(gradient, np.reshape(moved, x.shape), rtol=1e-9, atol=1e-9)


def test_no_product_of_matrices_is_left():
    a = np.ones((3, 3))
    assert products(one, a, a, a)[0] == 0
    count, source = products(chain, a, a, a)
    assert count == 1  # a row times a matrix
    assert "np.sum(" in source
    assert products(rows, a, a, a)[0] == 1  # a @ b, whose sums are squared
    assert products(stored, a, a, a)[0] >= 1
    primal = fwdad.show(lambda a: np.full((3, 3), 2.0) @ a, a)
    assert "@" in primal  # the user's own operations are left


def test_an_infinite_element_shows_where_it_did():
    b = np.ones((3, 4))
    b[1, 2] = np.inf
    b[2, 3] = np.nan
    found = fwdad.grad(one)(np.ones((2, 3)), b, b)
    assert_allclose(found, np.ones((2, 4)) @ b.T)


def with_its_own(a, b):
    """Multiplies with a matrix of equal rows by itself."""
    return np.sum((np.full((3, 3), 0.1) @ a) @ b)


def test_products_of_the_program_keep_their_bits():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 3, 3))
    value_and_gradient = fwdad.value_and_grad(with_its_own)
    value, found = value_and_gradient(a, b)
    assert value == with_its_own(a, b)
    assert_allclose(found, np.full((3, 3), 0.1).T @ np.ones((3, 3)) @ b.T, rtol=1e-13)
    source = fwdad.show(value_and_gradient, a, b)
    assert "@ a @ b)" in source, source
    assert source.count("@ ") == 4, source  # two are in the user's line, none of reverse mode


def test_second_derivatives_have_none_either():
    rng = np.random.default_rng(1)
    a, b, v = rng.normal(size=(3, 4, 4))
    f = lambda a: np.sum(a @ b) ** 2  # noqa: E731
    product = fwdad.jit(lambda a, v: fwdad.hvp(f, a, v), backend="numpy")
    direction = 2.0 * np.sum(v @ b) * (np.ones((4, 4)) @ b.T)
    assert_allclose(product(a, v), direction, rtol=1e-12)
    assert fwdad.show(product).count(" @ ") == 2  # a @ b and v @ b


@pytest.mark.parametrize("n", [1, 2, 5])
def test_compiled(compiled_gradient, n):
    rng = np.random.default_rng(n)
    a, b, c = rng.normal(size=(3, n, n))
    value, found = compiled_gradient(a, b, c)
    assert_allclose(value, chain(a, b, c), rtol=1e-13)
    assert_allclose(found, np.full((n, n), 3.0 / n**2) @ c.T @ b.T, rtol=1e-12, atol=1e-13)
    source = fwdad.show(compiled_gradient, backend="numba")
    assert source.count("np.dot(") == (3 if n > 1 else source.count("np.dot(")), source
    b[0, 0] = np.inf
    with np.errstate(invalid="ignore"):
        expected = np.full((n, n), 3.0 / n**2) @ c.T @ b.T
    assert_allclose(compiled_gradient(a, b, c)[1], expected, rtol=1e-12, atol=1e-13)


@pytest.fixture(scope="module")
def compiled_gradient():
    pytest.importorskip("numba")
    return fwdad.jit(fwdad.value_and_grad(chain))


def programs_of(f, args):
    made = fwdad.jit(fwdad.grad(f), backend="numpy").find(args, {})[0]
    return made.tape.program


@pytest.mark.parametrize("f", PROGRAMS)
def test_the_program_stays_well_formed(f):
    rng = np.random.default_rng(3)
    args = tuple(rng.normal(size=(4, 4)) for _ in range(3))
    program = programs_of(f, args)
    program.quiet = False  # the source below is that of the program itself
    before = defined(numpy_source(program))(*args)
    checked(lambda p: multiply_one_row(p) or True, program)
    after = defined(numpy_source(program))(*args)
    for x, y in zip(before, after, strict=True):
        assert_allclose(y, x, rtol=1e-12, atol=1e-13)
