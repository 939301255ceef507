"""Calls of packages that no tape holds: Python makes them, and they have their derivatives."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, interpolate, linalg, optimize, signal, special, stats

import fwdad
from fwdad.errors import UntraceableError
from tests.differences import central_differences
from tests.frontend.packages_of_text import package_of

pytestmark = pytest.mark.filterwarnings("ignore::fwdad.TraceWarning")
X = np.array([0.7, 1.3, 2.1])
SEEN = []
COUNT = {"calls": 0}
BUFFER = np.zeros(3)
MATRIX = scipy.sparse.csr_array(np.array([[2.0, 1.0, 0.0], [0.0, 3.0, 0.0], [0.5, 0.0, 1.0]]))


def root(p):
    return optimize.brentq(lambda x: x**3 + p[0] * x - p[1], 0.0, 3.0) * p[2]


def root_of_several(p):
    def f(z):
        return np.array([z[0] ** 2 + p[0] * z[1] - p[1], z[1] - z[0] * p[2]])

    return optimize.fsolve(f, np.array([1.0, 1.0])) * p[:2]


def decay(p):
    solved = integrate.solve_ivp(
        lambda t, y: np.array([y[1], -p[0] * y[0]]),
        (0.0, 1.0), np.array([p[1], 1.0]), rtol=1e-10, atol=1e-10,
    )  # fmt: skip
    return solved.y[0, -1] * p[2] + solved["t"][-1] if solved.success else p[0]


def rate(t, y, k):
    return -k * y


def at_given_times(p):
    solved = integrate.solve_ivp(
        rate, (0.0, 1.0), [p[0], p[1]], args=(p[2],), t_eval=[0.5, 1.0], rtol=1e-10, atol=1e-12
    )
    return solved.y.sum(axis=1)


def test_statistic(p):
    found = stats.ttest_1samp(p, 0.5)
    return found.statistic * p[0]


def correlation(p):
    return stats.pearsonr(p, np.array([0.1, 0.7, 0.4])).statistic * p[1]


def poles(p):
    b, a = signal.bilinear([p[0], 1.0], [p[1], p[2], 1.0])
    return np.concatenate([b, a])


def of_a_sparse_array(p):
    return MATRIX @ (p * p)


def with_defaults_and_functions_inside(p):
    scale = 2.0

    def f(x, a=p[0], *, b=p[1]):
        def cubed(z):
            return z**3 + a * z - b + 0.0 * scale

        return cubed(x) if x > -100.0 else f(x + 1.0)

    return optimize.brentq(f, 0.0, 3.0) * p[2]


def in_a_loop(p):
    found = p[0]
    for k in range(3):
        found = optimize.brentq(lambda x: x**3 + found * x - p[1] - 0.1 * k, 0.0, 3.0)
    return found * p[2]


def in_a_branch(p):
    if p[0] > 0.5:
        return root(p)
    return p[1] * p[2]


def draws_from_its_own_generator(p):
    return p * stats.norm.rvs(loc=p[1], scale=p[0], size=3, random_state=4)


PROGRAMS = [
    draws_from_its_own_generator, root, root_of_several, decay, at_given_times, test_statistic, correlation, poles,
    of_a_sparse_array, with_defaults_and_functions_inside, in_a_loop, in_a_branch,
]  # fmt: skip
test_statistic.__test__ = False


@pytest.mark.every(4)
@pytest.mark.parametrize("f", PROGRAMS)
def test_values_and_derivatives(f):
    fast = fwdad.jit(f)
    columns = [fwdad.jit(fwdad.jacfwd(f, chunk=n)) for n in (1, 2, 3)]
    rows = fwdad.jit(fwdad.jacrev(f))
    for x in (X, X * np.array([1.1, 0.9, 1.2]), X * 0.6, X):
        assert_allclose(fast(x), f(x), rtol=1e-12)
        wanted = central_differences(f, x)
        for jacobian in (*columns, rows):
            assert_allclose(jacobian(x), wanted, rtol=2e-6, atol=1e-7)
        assert_array_equal(x, x.copy())
    assert fwdad.cache_info(fast).traces <= 2


@pytest.mark.parametrize("f", [root, decay])
def test_second_derivatives(f):
    wanted = fwdad.hessian(f, X)
    assert_allclose(fwdad.jit(fwdad.hessian(f))(X), wanted, rtol=1e-8, atol=1e-10)
    along = np.array([0.3, -1.0, 0.7])
    found = fwdad.jit(lambda x: fwdad.hvp(f, x, along))(X)
    assert_allclose(found, wanted @ along, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("f", [root, decay, poles])
def test_of_a_compiled_function(f):
    fast, along = fwdad.jit(f), np.array([0.3, -1.0, 0.7])
    wanted = central_differences(f, X)
    assert_allclose(fwdad.jvp(fast, X, along)[1], wanted @ along, rtol=1e-6, atol=1e-8)
    y, pull = fwdad.vjp(fast, X)
    bar = np.ones(np.shape(y))
    assert_allclose(pull(bar), np.tensordot(bar, wanted, np.ndim(y)), rtol=1e-6, atol=1e-8)


def test_explain_says_what_python_calls():
    said = fwdad.explain(fwdad.jit(root), X)
    line = root.__code__.co_firstlineno + 1
    assert "Python calls scipy.optimize.brentq at " in said
    assert f"test_python_calls.py:{line}, because" in said


# -- what stays refused, with nothing left behind


def appends_outside(p):
    def f(x):
        SEEN.append(float(x))
        return x**3 + p[0] * x - p[1]

    return optimize.brentq(f, 0.0, 3.0)


def counts_outside(p):
    def f(x):
        COUNT["calls"] += 1
        return x**3 + p[0] * x - p[1]

    return optimize.brentq(f, 0.0, 3.0)


def stores_outside(p):
    def f(x):
        BUFFER[0] = x
        return x**3 + p[0] * x - p[1]

    return optimize.brentq(f, 0.0, 3.0)


def prints(p):
    def f(x):
        print(x)
        return x**3 + p[0] * x - p[1]

    return optimize.brentq(f, 0.0, 3.0)


def changes_a_list_of_the_program(p):
    seen = []

    def f(x):
        seen.append(x)
        return x**3 + p[0] * x - p[1]

    return optimize.brentq(f, 0.0, 3.0) * len(seen)


def changes_an_array_of_the_program(p):
    last = p * 1.0

    def f(x):
        last[0] = x
        return x**3 + p[0] * x - p[1]

    return optimize.brentq(f, 0.0, 3.0) * last[0]


def binds_a_name_of_the_program(p):
    calls = 0

    def f(x):
        nonlocal calls
        calls += 1
        return x**3 + p[0] * x - p[1]

    return optimize.brentq(f, 0.0, 3.0) * calls


def changes_an_object_from_outside(p):
    INTERPOLATOR.set_yi(p)
    return INTERPOLATOR(np.array([0.3]))[0]


INTERPOLATOR = interpolate.BarycentricInterpolator(np.arange(3.0), np.zeros(3), random_state=1)


def counted_rate(t, y):
    COUNT["calls"] += 1
    return -y


def counts_in_a_function_from_outside(p):
    return integrate.solve_ivp(counted_rate, (0.0, 1.0), p).y[:, -1]


def counted_root(x, a):
    COUNT["calls"] += 1
    return x**3 - a


def counts_in_a_root_from_outside(p):
    return optimize.brentq(counted_root, 0.0, 3.0, args=(p[0],)) + optimize.brentq(
        counted_root, 0.0, 3.0, args=(0.5,)
    )


def draws(p):
    return np.sum(stats.bootstrap((p,), np.mean, n_resamples=9).standard_error * p)


def raises_for_the_example(p):
    return optimize.brentq(lambda x: x**2 + p[0], 0.0, 3.0)


@pytest.mark.parametrize("f", [
    appends_outside, counts_outside, stores_outside, prints, changes_a_list_of_the_program,
    changes_an_array_of_the_program, binds_a_name_of_the_program, changes_an_object_from_outside,
    draws, raises_for_the_example, counts_in_a_function_from_outside,
    counts_in_a_root_from_outside,
])  # fmt: skip
def test_what_leaves_something_outside_is_refused(f, capsys):
    before = np.random.get_state()[2]
    with pytest.raises(UntraceableError) as caught:
        fwdad.jit(f)(X)
    assert caught.value.filename == __file__
    assert any("either" in note for note in caught.value.__notes__)
    assert not SEEN
    assert COUNT == {"calls": 0}
    assert_array_equal(BUFFER, 0.0)
    assert_array_equal(INTERPOLATOR.yi, np.zeros((3, 1)))
    assert capsys.readouterr().out == ""
    assert np.random.get_state()[2] == before


CONFIG, LEVELS, LEVEL = {"a": 1.0}, np.array([1.0, 2.0]), 1.0


class Holder:
    value = 1.0


HOLDER = Holder()


def reads_a_dict(p):
    return optimize.brentq(lambda x: x**3 - CONFIG["a"], 0.0, 3.0) * p[0]


def reads_an_array(p):
    return optimize.brentq(lambda x: x**3 - LEVELS[0], 0.0, 3.0) * p[0]


def reads_a_name(p):
    return optimize.brentq(lambda x: x**3 - LEVEL, 0.0, 3.0) * p[0]


def reads_an_object(p):
    return optimize.brentq(lambda x: x**3 - HOLDER.value, 0.0, 3.0) * p[0]


def of_a_dict(x):
    return x**3 - CONFIG["a"]


def hands_on_a_function(p):
    return optimize.brentq(of_a_dict, 0.0, 3.0) * p[0]


@pytest.mark.parametrize("backend", ["numpy", "auto"])
@pytest.mark.parametrize("f", [
    reads_a_dict, reads_an_array, reads_a_name, reads_an_object, hands_on_a_function,
])  # fmt: skip
def test_what_is_read_from_outside_is_read_at_each_run(f, backend, monkeypatch):
    fast, slope = fwdad.jit(f, backend=backend), fwdad.jit(fwdad.grad(f), backend=backend)
    for value in (1.0, 2.0, 0.5):
        monkeypatch.setitem(CONFIG, "a", value)
        monkeypatch.setitem(globals(), "LEVEL", value)
        monkeypatch.setattr(HOLDER, "value", value)
        LEVELS[0] = value
        assert fast(X) == pytest.approx(value ** (1 / 3) * X[0], rel=1e-10)
        assert_allclose(slope(X), [value ** (1 / 3), 0.0, 0.0], rtol=1e-10)


def has_a_root(p):
    return optimize.brentq(lambda x: x**2 - p[0], 0.0, 3.0) * p[1]


def test_what_a_package_raises_is_raised():
    fast, slope = fwdad.jit(has_a_root), fwdad.jit(fwdad.grad(has_a_root))
    none = np.array([-1.0, 2.0, 0.0])
    for f in (fast, slope):
        f(X)
        for _ in range(2):
            with pytest.raises(ValueError, match="different signs"):
                f(none)
        f(X)


def caught(p):
    try:
        return has_a_root(p)
    except ValueError:
        return p[1] * p[2]


def test_what_a_package_raises_is_caught():
    fast, slope = fwdad.jit(caught), fwdad.jit(fwdad.grad(caught))
    for x in (X, np.array([-1.0, 2.0, 3.0]), X, np.array([-2.0, 2.0, 3.0])):
        assert_allclose(fast(x), caught(x), rtol=1e-12)
        assert_allclose(slope(x), central_differences(caught, x), rtol=1e-6)


def kept_by_its_package(p):
    table = kept_by_a_package.table(p)  # noqa: F821  (set by the test)
    y = table.copy()
    y[0] = p[0] * 5.0
    return np.sum(y * p)


def test_a_number_that_a_package_keeps(monkeypatch):
    """A package's function that no array reaches writes what the program reads afterwards."""
    text = "SCALE = 2.0\ndef set_scale(s):\n    global SCALE\n    id(s)\n    SCALE = s\n"
    package = package_of(text, "keeps_a_number", monkeypatch)

    def f(p):
        package.set_scale(p[0])
        return p * package.SCALE

    for derivative in (fwdad.jacfwd(f), fwdad.jacrev(f)):
        with pytest.raises(UntraceableError, match="writes outside"):
            fwdad.jit(derivative)(X)
    assert package.SCALE == 2.0


def test_what_a_package_keeps_for_later_calls(monkeypatch):
    """A cache that does not depend on values may stay; a number that is kept once may not."""
    text = (
        "CACHE, FIRST = {}, None\n"
        "def scaled(name, x):\n    id(x)\n    CACHE.setdefault(name, [2.0])\n"
        "    return x * CACHE[name][0]\n"
        "def first(x):\n    global FIRST\n    id(x)\n    FIRST = x if FIRST is None else FIRST\n"
    )
    package = package_of(text, "keeps_for_later", monkeypatch)
    slope = fwdad.jit(fwdad.jacrev(lambda p: package.scaled("a", p[0]) * p))
    for x in (X, X * 0.6):
        assert_allclose(
            slope(x), central_differences(lambda p: 2.0 * p[0] * p, x), rtol=1e-6, atol=1e-8
        )

    def kept_first(p):
        package.first(p[0])
        return p * package.FIRST

    with pytest.raises(UntraceableError):
        fwdad.jit(fwdad.jacrev(kept_first))(X)
    assert package.FIRST is None


@pytest.mark.parametrize("backend", ["numpy", "auto"])
def test_what_a_package_keeps_is_not_written(backend, monkeypatch):
    """A copy of what it returns is dropped if nobody else can see the array: the package can."""
    text = "TABLE = np.ones(3)\ndef table(x):\n    id(x)\n    return TABLE\n"
    made = package_of(text, "kept_by_a_package", monkeypatch)
    monkeypatch.setitem(globals(), made.__name__, made)
    fast = fwdad.jit(kept_by_its_package, backend=backend)
    slope = fwdad.jit(fwdad.grad(kept_by_its_package), backend=backend)
    assert "Python calls" in fwdad.explain(fast, X)
    for _ in range(2):
        assert fast(X) == pytest.approx(5.0 * X[0] ** 2 + X[1] + X[2], rel=1e-14)
        assert_allclose(slope(X), [10.0 * X[0], 1.0, 1.0], rtol=1e-14)
        assert_array_equal(made.TABLE, 1.0)


STORED = """\
def stored(x):
    id(x)
    y, rows = np.zeros(3), np.zeros((2, 3))
    y[0] = x[0] ** 2
    y[1:] = x[1:] * x[0]
    rows[1] = y * x
    return y, {"rows": rows}
"""


def test_what_a_package_stores_has_its_tangents(monkeypatch):
    """A result that was written element by element carries its tangents in its memory."""
    stored = package_of(STORED, "stores_what_it_returns", monkeypatch).stored

    def f(p):
        y, parts = stored(p * 1.0)
        return y * p[1] + parts["rows"].sum(axis=0)

    fast = fwdad.jit(f)
    assert "Python calls" in fwdad.explain(fast, X)
    jacobians = [*(fwdad.jacfwd(f, chunk=n) for n in (1, 2, 3)), fwdad.jacrev(f)]
    compiled = [fwdad.jit(jacobian) for jacobian in jacobians]
    hessian = fwdad.jit(fwdad.hessian(lambda p: f(p).sum()))
    for x in (X, X * 0.6):
        wanted = central_differences(f, x)
        for jacobian in compiled:
            assert_allclose(jacobian(x), wanted, rtol=1e-7, atol=1e-8)
        assert_allclose(fwdad.jvp(fast, x, x)[1], wanted @ x, rtol=1e-7)
        second = hessian(x)
        of_slopes = central_differences(fwdad.grad(lambda p: f(p).sum()), x)
        assert_allclose(second, of_slopes, rtol=1e-6, atol=1e-7)


def test_lengths_that_only_the_results_have():
    """The ufunc of Legendre functions is given arrays, which tell it how many to compute."""

    def f(p):
        return special.lqn(2, p[0] / 4)[0] * p[1]

    assert_allclose(fwdad.jit(f)(X), f(X), rtol=1e-14)
    with pytest.raises(fwdad.errors.MissingRuleError, match="_lqn"):
        fwdad.jit(fwdad.jacfwd(f))(X)


@pytest.mark.parametrize("compute_expm", [False, True])
def test_a_number_that_may_be_none_as_a_length(compute_expm):
    """The number of squarings, which only large matrices have."""

    def f(p):
        found = linalg.expm_frechet(np.diag(p[:2]), np.eye(2), compute_expm=compute_expm)
        return found[0] if compute_expm else found

    fast, slope = fwdad.jit(f), fwdad.jit(fwdad.jacfwd(f))
    for x in (X, 0.01 * X, 9.0 * X):
        assert_allclose(fast(x), f(x), rtol=1e-12)
        assert_allclose(slope(x), central_differences(f, x), rtol=1e-6, atol=1e-8)


def test_a_method_of_the_users_is_given_to_a_package():
    class Model:
        rate = 2.0

        def density(self, t):
            return self.rate * t**2

    model = Model()

    def f(p):
        return integrate.quad(model.density, 0.0, p[0])[0]

    assert_allclose(fwdad.jit(f)(X), f(X), rtol=1e-12)
    assert_allclose(fwdad.jit(fwdad.grad(f))(X), [2.0 * X[0] ** 2, 0.0, 0.0], rtol=1e-10)


def test_a_text_of_numbers_is_not_a_constant():
    def f(p):
        found = optimize.root(lambda x: x - p, np.zeros(3), method="lm")
        return found.x * len(found.message)

    with pytest.raises(UntraceableError, match="string of a number"):
        fwdad.jit(f)(X)


def test_another_structure_is_another_tape():
    def f(p):
        bracket = optimize.root_scalar(lambda x: x**2 - p[0], bracket=[0.0, 3.0])
        return bracket.root if p[1] > 1.0 else (bracket.root, p[2])

    fast = fwdad.jit(f)
    for x in (X, X * 0.5, X):
        assert_allclose(fast(x), f(x), rtol=1e-12)


def test_results_of_one_memory():
    """They become arrays of their own: one of them may not be written."""

    def fitted(x):
        found = optimize.minimize(
            lambda t: ((t - np.array([1.0, 2.0])) ** 2).sum(), np.zeros(2), method="Nelder-Mead"
        )
        return found, x

    def f(x):
        found, x = fitted(x)
        return x * found.x.sum() + found.final_simplex[0][0, 1]

    def writes(x):
        found, x = fitted(x)
        found.x[0] = x
        return found.final_simplex[0][0, 0] + x

    assert fwdad.jit(f)(2.0) == f(2.0)
    assert_allclose(fwdad.jit(fwdad.grad(f))(2.0), f(3.0) - f(2.0), rtol=1e-12)
    with pytest.raises(UntraceableError, match="has the same memory"):
        fwdad.jit(writes)(2.0)
