"""``jit``: one trace for many calls, and derivatives of what was traced."""

import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.transforms.forward.programs import PROGRAMS, X, lorenz


def own(args):
    """Arguments that a program may write into."""
    return [a.copy() if isinstance(a, np.ndarray) else a for a in args]


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_and_mutated_arguments_are_those_of_the_plain_call(name):
    f, args = PROGRAMS[name]
    plain, traced = own(args), own(args)
    expected, found = f(*plain), fwdad.jit(f, backend="numpy")(*traced)
    assert type(found) is type(expected)
    assert_array_equal(found, expected)
    for a, b in zip(traced, plain, strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_of_a_jitted_function(name):
    f, args = PROGRAMS[name]
    g = fwdad.jit(f, backend="numpy")
    for chunk in (1, 2, None):
        assert_allclose(
            fwdad.jacobian(g, args[0], args=args[1:], chunk=chunk),
            fwdad.jacobian(f, args[0], args=args[1:], chunk=chunk),
            rtol=1e-12,
            atol=1e-13,
        )


@pytest.mark.every(3, first=1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_jacobian_as_one_traced_program(name):
    f, args = PROGRAMS[name]
    J = fwdad.jit(lambda x: fwdad.jacobian(f, x, args=args[1:]))
    expected = fwdad.jacobian(f, args[0], args=args[1:])
    assert_allclose(J(own(args)[0]), expected, rtol=1e-12, atol=1e-13)


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def test_nested_derivatives_as_one_program():
    H = fwdad.jit(lambda x: fwdad.hessian(rosenbrock, x))
    assert_allclose(H(X), fwdad.hessian(rosenbrock, X), rtol=1e-12)
    g = fwdad.jit(fwdad.grad(rosenbrock))
    assert_allclose(g(X), fwdad.grad(rosenbrock)(X), rtol=1e-12)


def test_perturbations_of_nested_derivatives_are_not_confused():
    f = fwdad.jit(
        lambda x: fwdad.derivative(lambda s: s * fwdad.derivative(lambda t: s + t, 1.0), x)
    )
    assert f(1.0) == 1.0


def test_the_hessian_of_a_jitted_function():
    H = fwdad.hessian(fwdad.jit(rosenbrock), X)
    assert_allclose(H, fwdad.hessian(rosenbrock, X), rtol=1e-12)


# -- one tape for many calls (CASES, "Loops and branches on the tape")


def test_another_trip_count_is_the_same_tape():
    @fwdad.jit
    def f(a, n):
        a = 2 * a
        for _ in range(n):
            a = a * n
        return a

    assert f(2.0, 3) == 108.0
    assert f(2.0, 4) == 1024.0
    assert f(2.0, 0) == 4.0
    assert fwdad.cache_info(f) == (1, 2)
    assert fwdad.derivative(f, 2.0, args=(4,)) == 512.0
    assert fwdad.derivative(f, 2.0, args=(3,)) == 81.0 * 2 / 3
    assert fwdad.cache_info(f) == (2, 3)


def test_another_side_of_a_branch_is_the_same_tape():
    f = fwdad.jit(lambda x: x if x > 0 else -x)
    assert f(3.0) == 3.0
    assert f(-3.0) == 3.0
    assert fwdad.cache_info(f).traces == 1
    assert [fwdad.derivative(f, x) for x in (-3.0, 3.0)] == [-1.0, 1.0]
    assert fwdad.cache_info(f).traces == 2


def test_another_length_is_the_same_tape():
    f = fwdad.jit(rosenbrock)
    for n in (2, 5, 9):
        x = np.linspace(0.3, 1.7, n)
        assert_allclose(f(x), rosenbrock(x), rtol=1e-15)  # sums are added up in another order
    assert fwdad.cache_info(f) == (1, 2)
    assert f(np.ones(1)) == rosenbrock(np.ones(1))  # a length of one broadcasts: a tape of its own
    assert fwdad.cache_info(f).traces == 2


def staggered(x, y):
    return (x[1:] * y[:-1] + x[:-1]) * 2.0


def test_equal_lengths_are_assumed_and_checked():
    """Neighbours of arrays of one length never broadcast; those of others may."""
    f, g = fwdad.jit(staggered), fwdad.jit(fwdad.grad(lambda x, y: np.sum(staggered(x, y) ** 2)))
    rng = np.random.default_rng(0)
    for n, m, traces in [(4, 4, 1), (7, 7, 1), (5, 2, 2), (2, 5, 2), (3, 3, 2), (6, 2, 2)]:
        x, y = rng.normal(size=n), rng.normal(size=m)
        for _ in range(2):  # the second time by the shortest way
            assert_array_equal(f(x, y), staggered(x, y))
            slopes = fwdad.jacobian(lambda x, y=y: staggered(x, y), x, mode="forward")
            assert_allclose(g(x, y), 2 * staggered(x, y) @ slopes, rtol=1e-14, atol=1e-14)
        assert fwdad.cache_info(f).traces == traces
    with pytest.raises(ValueError, match="broadcast"):
        f(np.ones(4), np.ones(6))


def parabola(p, x):
    a, b, c = p  # its length is known from here on
    return a * x**2 + b * x + c


@pytest.mark.parametrize("backend", ["numpy", "auto"])
def test_equal_lengths_are_checked_where_one_had_to_be_known(backend):
    """As many points as parameters in the first call, and other numbers of points later."""
    f, p = fwdad.jit(parabola, backend=backend), np.array([0.5, -2.0, 3.0])
    g = fwdad.jit(fwdad.jacrev(parabola), backend=backend)
    for n in (3, 5, 2, 3):
        x = np.linspace(1.0, 2.0, n)
        for _ in range(2):  # the second time by the shortest way
            assert_allclose(f(p, x), 0.5 * x**2 - 2.0 * x + 3.0, rtol=1e-14)
            assert_allclose(g(p, x), np.stack([x**2, x, x**0], axis=1), rtol=1e-14)
    assert fwdad.cache_info(f).traces == 2


def test_an_axis_that_is_an_argument_is_assumed_and_checked():
    f = fwdad.jit(lambda x, axis: np.sum(x, axis=axis))
    x = np.arange(6.0).reshape(2, 3)
    assert_array_equal(f(x, 0), [3, 5, 7])
    assert_array_equal(f(x, 1), [3, 12])
    assert_array_equal(f(x + 1, 1), [6, 15])
    assert fwdad.cache_info(f) == (2, 1)


def test_other_types_are_other_tapes():
    f = fwdad.jit(lambda x: x * 2)
    values = [f(2), f(2.0), f(np.float32(2)), f(1j), f(np.ones(3)), f(np.ones(3, np.float32))]
    assert [type(v) for v in values[:4]] == [int, float, np.float32, complex]
    assert values[5].dtype == np.float32
    assert fwdad.cache_info(f).traces == 6


FACTOR = 2.0


def doubled(x):
    return FACTOR * x


def helper(x):
    return x + 1.0


def calls_helper(x):
    return helper(x)


def test_captured_numbers_are_read_at_each_call(monkeypatch):
    f = fwdad.jit(doubled)
    assert f(3.0) == 6.0
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert f(3.0) == 15.0
    assert fwdad.cache_info(f).traces == 1


def test_a_captured_array_is_read_at_each_call():
    a = np.ones(3)
    f = fwdad.jit(lambda x: np.sum(a * x))
    assert f(X) == np.sum(X)
    a[:] = 2.0
    assert f(X) == np.sum(2 * X)


def test_a_function_that_is_replaced_is_traced_again(monkeypatch):
    f = fwdad.jit(calls_helper)
    assert f(1.0) == 2.0
    monkeypatch.setitem(globals(), "helper", lambda x: x - 1.0)
    assert f(1.0) == 0.0
    assert fwdad.cache_info(f).traces == 2


# -- as a user meets it


def test_the_tape_reads_like_the_program():
    def sums(x, n):
        s = 0.0
        for i in range(n):
            s = s + np.sin(x[i])
        return s

    text = fwdad.show(sums, X, 2, backend="tape")
    assert text.splitlines() == [
        "tape sums(x: float64[?], n: int):",
        "    s = np.float64(0.0)",
        "    for i in range(n):",
        "        s = s + np.sin(x[i])",
        "    return s",
    ]
    assert fwdad.show(sums, X, 2) == fwdad.show(sums, X, 3)


def test_show_needs_a_call_or_arguments():
    f = fwdad.jit(rosenbrock)
    with pytest.raises(ValueError, match="has not been called"):
        fwdad.show(f)
    f(X)
    assert "np.sum" in fwdad.show(f)
    assert "operations" in fwdad.explain(f)


def test_an_exception_names_the_line_of_the_user():
    def f(x, i):
        y = x * 2
        return y[i]

    with pytest.raises(IndexError) as caught:
        fwdad.jit(f, backend="numpy")(X, 7)
    assert any("return y[i]" in note for note in caught.value.__notes__)


def test_what_cannot_be_traced_is_refused_with_its_line():
    def f(x):
        return np.random.default_rng().standard_normal() * x

    with pytest.raises(fwdad.errors.UntraceableError, match="random") as caught:
        fwdad.jit(f, backend="numpy")(1.0)
    assert caught.value.filename == __file__
    assert "default_rng" in caught.value.text


def test_a_jitted_method_and_a_pickled_function():
    class Model:
        def __init__(self, k):
            self.k = k

        @fwdad.jit
        def force(self, x):
            return -self.k * x

    assert Model(2.0).force(3.0) == -6.0
    assert Model(4.0).force(3.0) == -12.0
    f = pickle.loads(pickle.dumps(fwdad.jit(rosenbrock)))
    assert f(X) == rosenbrock(X)


def test_threads_share_one_function():
    f = fwdad.jit(lorenz)
    results = {}

    def work(k):
        results[k] = f(X + k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k, y in results.items():
        assert_array_equal(y, lorenz(X + k))
    assert fwdad.cache_info(f).traces == 1


def test_a_number_is_broadcast_to_a_shape():
    f = fwdad.jit(lambda x: np.broadcast_to(2.5, (3, len(x))) * x, backend="numpy")
    assert_array_equal(f(X), np.full((3, 3), 2.5) * X)


@pytest.mark.parametrize(
    "x",
    [
        np.arange(12.0)[::2] + 1,
        np.asfortranarray(np.arange(1.0, 13).reshape(3, 4)),
        np.arange(1.0, 13).reshape(3, 4).T,
        np.empty(0),
        np.array(2.0),
        np.arange(1, 5, dtype=np.float32),
        np.arange(1, 5) + 1j,
    ],
    ids=["strided", "Fortran", "transposed", "empty", "0-d", "float32", "complex"],
)
def test_layouts_and_dtypes(x):
    def f(x):
        return np.exp(-x) * x + 1

    expected, found = f(x), fwdad.jit(f, backend="numpy")(x)
    assert_array_equal(found, expected)
    assert found.dtype == expected.dtype


def test_a_read_only_argument_may_be_read():
    x = X.copy()
    x.flags.writeable = False
    assert_array_equal(fwdad.jit(lambda x: x * 2)(x), X * 2)
    with pytest.raises(ValueError, match="read-only"):
        fwdad.jit(PROGRAMS["in_place"][0])(x)


@pytest.mark.parametrize("dtype", [">f8", ">i4", np.float16, np.longdouble])
def test_what_has_a_type_that_numba_does_not_know_runs_under_numpy(dtype):
    pytest.importorskip("numba")
    f = fwdad.jit(lambda a: a * 2 + a[0])
    assert_array_equal(f(X), X * 2 + X[0])
    x = np.arange(1, 4).astype(dtype)
    for _ in range(2):
        found = f(x)
        assert_array_equal(found, x * 2 + x[0])
        assert found.dtype == (x * 2 + x[0]).dtype
    assert "by NumPy, because" in fwdad.explain(f, x)
    assert_array_equal(f(X), X * 2 + X[0])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[x > 1] * 2,
        lambda x: x[[2, 0]] * 2,
        lambda x: np.roll(x, 1) + 1,
        lambda x: np.diag(np.outer(x, x)) * 2.0,
        lambda x: np.polyval([1, 2, 3], x),
    ],
)
def test_another_byte_order_runs_under_numpy(f):
    pytest.importorskip("numba")
    x = np.array([0.5, 1.5, 2.5]).astype(">f8")
    assert_array_equal(fwdad.jit(f)(x), f(x))


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_function_made_inside_is_put_under_jit(backend):
    if backend == "numba":
        pytest.importorskip("numba")

    def called(x):
        return np.sum(fwdad.jit(lambda y: y * y * x)(x))

    def decorated(x):
        @fwdad.jit(parallel=True)
        def h(y):
            return y * y * x

        return np.sum(h(x))

    def differentiated(x):
        return np.sum(fwdad.jit(fwdad.grad(lambda y: np.sum(y**3) * x[0]))(x)) / 3

    expected = 3 * X**2
    for f in (called, decorated):
        assert fwdad.jit(f, backend=backend)(X) == f(X)
        for transform in (fwdad.grad, fwdad.jacfwd, fwdad.jacrev):
            assert_allclose(transform(f)(X), expected)
            assert_allclose(fwdad.jit(transform(f), backend=backend)(X), expected)
    expected = 2 * X * X[0] + np.array([np.sum(X**2), 0.0, 0.0])[: len(X)]
    for transform in (fwdad.grad, fwdad.jacfwd):
        assert_allclose(transform(differentiated)(X), expected)
        assert_allclose(fwdad.jit(transform(differentiated), backend=backend)(X), expected)


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None  # as if it were not installed
import numpy as np
import fwdad

f = fwdad.jit(lambda x: np.sum(x**3))
g = fwdad.jit(fwdad.grad(lambda x: np.sum(x**3)))
print(f(np.arange(3.0)), f(np.arange(4.0)), *g(np.arange(3.0)))
print("NumPy" in str(fwdad.explain(f, np.arange(3.0))))
try:
    fwdad.jit(np.sum, backend="numba")(np.ones(2))
except ImportError as error:
    print("pip install" in str(error))
print("numba" in {name for name, module in sys.modules.items() if module is not None})
"""


def test_without_numba_jit_runs_under_numpy_and_says_so_once(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(WITHOUT_NUMBA)
    ran = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=True, timeout=100
    )
    assert ran.stdout.split() == ["9.0", "36.0", "0.0", "3.0", "12.0", "True", "True", "False"]
    assert ran.stderr.count("Numba is not installed") == 1
