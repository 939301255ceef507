"""The language: what runs forwards and backwards, what is refused, what raises."""

import linecache
import re

import numpy as np
import pytest

import fwdad
from fwdad import InvertibilityError, IrreversibleError, ancilla, compute, cond, copy_out, free


@fwdad.reversible
def norm(y, r2, x):
    for i in range(len(x)):
        r2 += x[i] ** 2
    y += np.sqrt(r2)
    return y, r2, x


@fwdad.reversible
def dot(s, x, y):
    with compute():
        t = ancilla(0.0)
        for i in range(len(x)):
            t += x[i] * y[i]
        with copy_out():
            s += np.exp(t)


@fwdad.reversible
def copied(x, y):
    t = ancilla(y)
    x += t
    free(t, y)


@fwdad.reversible
def fibonacci(out, n):
    with compute():
        n1 = ancilla(0)
        n2 = ancilla(0)
        n1 += n - 1
        n2 += n - 2
        with copy_out():
            if n <= 2:
                out += 1
            else:
                fibonacci(out, n1)
                fibonacci(out, n2)


@fwdad.reversible
def until(x, y):
    while cond(x < 100, x > 0):
        x += y


@fwdad.reversible
def moves(a, b, x):
    a, b = b, a
    x[0], x[1] = x[1], x[0]
    a = -a
    fwdad.rotate(x[0], x[1], b)
    (~dot)(a, x[:2], x[2:])


@fwdad.reversible
def backwards(x, y):
    for i in range(len(x) - 1, -1, -1):
        k = len(x) - 1 - i
        y[i] += np.sin(x[k])
    for i in range(1, len(x), 2):
        y[i] -= x[i] * x[i - 1]
    for v in x:
        y[0] += v * v


@fwdad.reversible
def apply(y, x, f, g):
    y += f(x)
    g(y, x, 2.0 * x)


@fwdad.reversible
def scaled(y, x, c):
    y += c * x


@fwdad.reversible
def matrix(y, a, x):
    y += a @ np.tanh(x)
    a[:, 0] += x[0] * y
    y = -y


X = np.array([0.3, -1.2, 0.7, 2.0])
PROGRAMS = {
    "norm": (norm, (0.0, 0.0, X)),
    "dot": (dot, (0.5, X, X[::-1].copy())),
    "copied": (copied, (1.0, 2.0)),
    "moves": (moves, (0.3, 0.4, X)),
    "backwards": (backwards, (X, np.zeros(4))),
    "apply": (apply, (0.2, 1.3, np.cos, scaled)),
    "matrix": (matrix, (np.zeros(3), np.arange(12.0).reshape(3, 4) / 7, X)),
}


def flat(value):
    parts = value if isinstance(value, tuple) else (value,)
    return np.concatenate([np.ravel(p) for p in parts if not callable(p)])


def is_float(a):
    return isinstance(a, float) or (isinstance(a, np.ndarray) and a.dtype.kind == "f")


@pytest.mark.parametrize("name", PROGRAMS)
def test_inverse_undoes(name):
    f, args = PROGRAMS[name]
    before = [np.copy(a) if isinstance(a, np.ndarray) else a for a in args]
    there = f(*args)
    np.testing.assert_allclose(flat((~f)(*there)), flat(args), rtol=1e-13, atol=1e-13)
    assert ~~f is f
    for a, b in zip(args, before, strict=True):
        assert np.array_equal(a, b) if isinstance(a, np.ndarray) else a is b


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("inverse", [False, True])
def test_pullback_agrees_with_forward_mode(name, inverse):
    f, args = PROGRAMS[name]
    if inverse:
        args = f(*args)
        f = ~f
    wrt = tuple(k for k, a in enumerate(args) if is_float(a))
    weights = [np.cos(1.0 + np.arange(np.size(a))).reshape(np.shape(a)) for a in args]

    def loss(*args):
        return sum(np.sum(w * y) for w, y in zip(weights, f(*args), strict=True) if is_float(y))

    reverse = fwdad.grad(loss, argnums=wrt)(*args)
    for chunk in (1, 2, 3):
        forward = fwdad.jacfwd(loss, argnums=wrt, chunk=chunk)(*args)
        np.testing.assert_allclose(flat(reverse), flat(forward), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["dot", "moves", "backwards", "matrix"])
def test_compiled(name):
    f, args = PROGRAMS[name]
    wrt = tuple(k for k, a in enumerate(args) if is_float(a))

    def loss(*args):
        return np.sum(np.sin(flat_sum(f(*args))))

    compiled = fwdad.jit(fwdad.grad(loss, argnums=wrt))
    expected = fwdad.grad(loss, argnums=wrt)(*args)
    np.testing.assert_allclose(flat(compiled(*args)), flat(expected), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(flat(fwdad.jit(f)(*args)), flat(f(*args)), rtol=1e-14)


def flat_sum(parts):
    total = 0.0
    for p in parts:
        total = total + np.sum(p)
    return total


def test_norm_has_the_published_gradient():
    x = np.array([1.0, 2.0, 3.0])
    y, r2, same = norm(0.0, 0.0, x)
    assert (y, r2) == (np.sqrt(14.0), 14.0)
    y, r2, same = (~norm)(y, r2, same)
    assert (y, r2) == (0.0, 0.0)
    assert np.array_equal(same, x)
    one, dr2, dx = fwdad.grad(norm, argnums=(0, 1, 2))(0.0, 0.0, x)
    assert one == 1.0
    np.testing.assert_allclose(dr2, 0.13363, atol=5e-6)
    np.testing.assert_allclose(dx, [0.26726, 0.53452, 0.80178], atol=5e-6)


def test_recursion_and_loops_with_conditions():
    assert fibonacci(0, 10) == (55, 10)
    assert (~fibonacci)(55, 10) == (0, 10)
    assert until(0, 9) == (108, 9)
    assert (~until)(108, 9) == (0, 9)


def test_cotangent_of_a_copied_ancilla():
    assert fwdad.grad(copied, argnums=(0, 1))(1.0, 2.0) == (1.0, 1.0)


def test_second_derivatives():
    x = X[:3]
    expected = np.exp(x @ x) * (4 * np.outer(x, x) + 2 * np.eye(3))
    for chunk in (1, 2, 3):
        hessian = fwdad.hessian(lambda x: dot(0.0, x, x.copy())[0], x, chunk=chunk)
        np.testing.assert_allclose(hessian, expected, rtol=1e-12)


def test_inside_an_ordinary_loop():
    def f(x):
        total = 0.0
        for k in range(3):
            y, _, moved = norm(0.0, 0.0, x * (k + 1))
            moved[0] = 7.0
            total += y * moved[1]
        return total

    expected = fwdad.jacobian(f, X)
    np.testing.assert_allclose(fwdad.grad(f)(X), expected, rtol=1e-13)
    np.testing.assert_allclose(fwdad.jit(fwdad.grad(f))(X), expected, rtol=1e-13)


def own_update(x, y):
    y -= y


def product(x, y):
    x -= x * y


def never_freed(x):
    t = ancilla(0.0)
    t += x


def freed_twice(x):
    t = ancilla(0.0)
    free(t, 0.0)
    free(t, 0.0)


def used_after(x):
    t = ancilla(0.0)
    free(t, 0.0)
    x += t


def changed_index(x):
    for i in range(3):
        i += 1


def overlapping(x):
    x[1:] += x[:-1]


def assigned(x):
    x = 3  # noqa: F841


def stale_name(x, n):
    j = n + 1
    n += 1
    x += j


def twice(x):
    scaled(x, x, 2.0)


def freed_in_a_branch(x):
    t = ancilla(0.0)
    if x > 0:
        free(t, 0.0)


def early(x):
    for i in range(3):
        x += i
        break


@pytest.mark.parametrize(
    ("f", "line", "variable"),
    [
        (own_update, 1, "y"),
        (product, 1, "x"),
        (never_freed, 1, "t"),
        (freed_twice, 3, "t"),
        (used_after, 3, "t"),
        (changed_index, 2, "i"),
        (overlapping, 1, "x[1:]"),
        (assigned, 1, "x"),
        (stale_name, 1, "j"),
        (twice, 1, "x"),
        (freed_in_a_branch, 3, "t"),
        (early, 3, "break"),
    ],
)
def test_refused_when_defined(f, line, variable):
    with pytest.raises(IrreversibleError, match=re.escape(variable)) as caught:
        fwdad.reversible(f)
    assert caught.value.lineno == f.__code__.co_firstlineno + line
    assert caught.value.filename == __file__


@fwdad.reversible
def leaks(x, y):
    t = ancilla(0.0)
    t += y
    x += t
    free(t, 0.0)


@fwdad.reversible
def branches(x):
    if x > 1:
        x -= 1


@fwdad.reversible
def begun(x, y):
    while cond(x < 100, x > -10):
        x += y


@fwdad.reversible
def grows(n, x):
    for _ in range(n):
        n += 1
        x += 1.0


@fwdad.reversible
def one_place(x, i, j):
    x[i] += 2.0 * x[j]


@fwdad.reversible
def neighbours(x):
    for i in range(len(x)):
        x[i] += 0.5 * x[i - 1]


@pytest.mark.parametrize(
    ("f", "args", "line", "variable", "expected", "found"),
    [
        (neighbours, (np.ones(1),), 3, "i", "two different elements", 0),
        (leaks, (1.0, 2.0), 5, "t", 0.0, 2.0),
        (branches, (1.2,), 2, "x > 1", True, False),
        (begun, (0, 9), 2, "x > -10", False, True),
        (grows, (3, 0.0), 2, "n", 3, 6),
        (one_place, (np.ones(3), 2, 2), 2, "i", "two different elements", 2),
        (one_place, (np.ones(3), 2, -1), 2, "i", "two different elements", 2),
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_raises_when_it_runs(f, args, line, variable, expected, found, compiled):
    run = fwdad.jit(f) if compiled else f
    with pytest.raises(InvertibilityError) as caught:
        run(*args)
    error = caught.value
    first = f.__wrapped__.__code__.co_firstlineno
    assert (error.line, error.lineno) == (first + line, first + line)
    assert (error.variable, error.expected, error.found) == (variable, expected, found)


def test_checks_can_be_off_and_only_then_are():
    @fwdad.reversible(check=False)
    def leaks(x, y):
        t = ancilla(0.0)
        t += y
        x += t
        free(t, 0.0)

    @fwdad.reversible
    def partly(x, y):
        with fwdad.unchecked():
            t = ancilla(0.0)
            t += y
            x += t
            free(t, 0.0)
        s = ancilla(0.0)
        s += y
        free(s, 0.0)

    assert leaks(1.0, 2.0) == (3.0, 2.0)
    with pytest.raises(InvertibilityError, match="'s'"):
        partly(1.0, 2.0)


def test_arguments_are_updated_in_place_if_told_so_and_kept_if_it_fails():
    x = np.ones(3)
    scaled(x, np.ones(3), 2.0)
    assert np.array_equal(x, np.ones(3))
    scaled(x, np.ones(3), 2.0, inplace=True)
    assert np.array_equal(x, 3 * np.ones(3))
    with pytest.raises(InvertibilityError):
        one_place(x, 1, 1, inplace=True)
    assert np.array_equal(x, 3 * np.ones(3))
    with pytest.raises(fwdad.AliasedArgumentError):
        scaled(x, x, 2.0)


def test_the_inverse_can_be_read_and_run():
    text = fwdad.show(~backwards)
    assert "for i in reversed(range(1, len(x), 2)):" in text
    assert "y[i] += x[i] * x[i - 1]" in text
    assert "with fwdad.compute():" in fwdad.show(~dot)
    adjoint = fwdad.show(fwdad.grad(norm, argnums=2), 0.0, 0.0, X)
    assert "x_bar" in adjoint


def test_measures():
    assert fwdad.check_inverse(norm, 0.0, 0.0, X) < 1e-15
    assert fwdad.check_gradient(dot, 0.3, X, X + 1) < 1e-8
    assert fwdad.check_gradient(~moves, 0.3, 0.4, X) < 1e-8
    with pytest.raises(InvertibilityError, match="1e-20"):
        fwdad.check_inverse(copied, 1e-20, 1e20)


def test_an_array_that_is_broadcast():
    @fwdad.reversible
    def spread(y, x):
        y += x

    y, x = np.ones((4, 3)), np.array([[1.0, 2.0, 3.0]])
    gradient = fwdad.grad(lambda x: np.sum(spread(y, x)[0] ** 2))(x)
    np.testing.assert_allclose(gradient, 8 * (1 + x))


def test_slices_that_may_meet_are_refused():
    def f(x, n):
        x[:n] += x[n + 1 :]

    with pytest.raises(IrreversibleError, match="read by its own update"):
        fwdad.reversible(f)


@fwdad.reversible
def counted(n, m, a, k):
    n *= m
    a *= k
    n /= 3
    for i in range(2):
        a[i] *= m + i


def test_ints_are_multiplied_where_that_is_exact():
    args = (6, 5, np.array([4, -3]), np.array([2, 7]))
    for f, back in ((counted, ~counted), (fwdad.jit(counted), fwdad.jit(~counted))):
        there = f(*args)
        assert there[0] == 10
        assert list(there[2]) == [40, -126]
        again = back(*there)
        assert again[0] == 6
        assert list(again[2]) == [4, -3]
    assert "n *= 3" in fwdad.show(~counted)
    for bad, variable in (
        ((7, 5, *args[2:]), "n"),
        ((6, 0, *args[2:]), "m"),
        ((6, 5, np.array([2**62, 1]), args[3]), "a"),
        ((6, 5, args[2], np.array([0, 1])), "k"),
    ):
        with pytest.raises(InvertibilityError) as caught:
            counted(*bad)
        assert caught.value.variable == variable

    @fwdad.reversible
    def halved(n, x):
        n *= x

    with pytest.raises(IrreversibleError, match="only ints"):
        halved(3, 0.5)


@fwdad.reversible
def parts(z, w, x):
    z.real += x * w.imag[0]
    w[1].imag -= np.sin(x)
    z.imag += z.real * x
    w.real[:2] += z.imag * w.imag[:2]
    x += w.real.sum() * w.T[0].real


def test_real_and_imaginary_parts_are_places():
    args = (1.0 - 2j, np.array([0.3 + 1j, -0.7j, 2.0]), 0.4)
    there = parts(*args)
    z, w, x = args
    z += x * w[0].imag
    w = w - np.array([0.0, 1j * np.sin(x), 0.0])
    z = complex(z.real, z.imag + z.real * x)
    w = w + np.array([z.imag * w[0].imag, z.imag * w[1].imag, 0.0])
    x += w.real.sum() * w[0].real
    np.testing.assert_allclose(flat(there), flat((z, w, x)), rtol=1e-14)
    np.testing.assert_allclose(flat((~parts)(*there)), flat(args), rtol=1e-13, atol=1e-15)
    assert fwdad.check_gradient(parts, *args) < 1e-8
    assert fwdad.check_gradient(~parts, *there) < 1e-8

    def loss(x):
        z, w, y = parts(args[0] * x, args[1] + 1j * x, x)
        return z.real * w[1].imag + y

    for run in (fwdad.grad(loss), fwdad.jit(fwdad.grad(loss))):
        np.testing.assert_allclose(run(0.4), fwdad.derivative(loss, 0.4), rtol=1e-12)

    @fwdad.reversible
    def wrong(z, w):
        z.real += w

    with pytest.raises(IrreversibleError, match="only real numbers"):
        wrong(1j, 2j)

    def own(z):
        z.real += z.real * z.imag

    with pytest.raises(IrreversibleError, match="own update"):
        fwdad.reversible(own)


def test_attributes_and_methods_of_arrays_are_read():
    @fwdad.reversible
    def reads(y, x):
        y += x.sum() * x.T[0] + x.mean() * x.max()

    x = np.array([1.0, 2.0, 4.0])
    expected = fwdad.jacobian(lambda x: x.sum() * x[0] + x.mean() * x.max(), x)
    np.testing.assert_allclose(fwdad.grad(reads, argnums=1)(0.0, x), expected, rtol=1e-14)

    def own(x):
        x[0] += x.sum()

    with pytest.raises(IrreversibleError, match="own update"):
        fwdad.reversible(own)


def test_a_gather_is_read():
    @fwdad.reversible
    def gathers(y, x, at):
        y += x[at]
        y -= x[at[0]] * x[at[::-1]]

    x, at = np.array([1.0, 2.0, 4.0]), np.array([2, 2])
    y, *_ = gathers(np.zeros(2), x, at)
    np.testing.assert_allclose(y, x[at] - x[2] * x[at[::-1]])
    assert fwdad.check_gradient(gathers, y, x, at) < 1e-8

    def loss(x):
        return np.sum(np.array([1.0, 3.0]) * gathers(np.zeros(2), x, at)[0])

    expected = fwdad.jacobian(loss, x)
    for run in (fwdad.grad(loss), fwdad.jit(fwdad.grad(loss), backend="numpy")):
        np.testing.assert_allclose(run(x), expected, rtol=1e-14)


def test_a_namespace_without_a_name():
    """As ``exec`` makes one for code that is generated."""
    code = "def rotate(x, y):\n    x += np.sin(y)\n"
    name = "<generated rotation>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    namespace = {"np": np}
    exec(compile(code, name, "exec"), namespace)
    rotate = fwdad.reversible(namespace["rotate"])
    gradient = fwdad.grad(lambda y: rotate(0.5, y)[0])(1.2)
    assert gradient == pytest.approx(np.cos(1.2), rel=1e-15)
