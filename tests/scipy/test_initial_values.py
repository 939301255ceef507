"""Derivatives through ``solve_ivp``: exact solutions, other tolerances, and SciPy's own values."""

import types

import numpy as np
import pytest
import scipy.integrate
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import solve_ivp

import fwdad
from fwdad.errors import StaleValueError, UndefinedDerivativeError

METHODS = ["RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA"]
TIGHT = {"rtol": 1e-9, "atol": 1e-11}
# of the third order are these two, at these tolerances
CLOSE = {"RK23": 5e-6, "BDF": 1e-5, "LSODA": 1e-6}


def tight(method):
    return TIGHT if method != "RK23" else {"rtol": 1e-7, "atol": 1e-9}


def logistic(t, y, rate, capacity):
    return rate * y * (1 - y / capacity)


def exact(t, y0, rate, capacity):
    grown = np.exp(rate * t)
    return capacity * y0 * grown / (capacity + y0 * (grown - 1))


POINT = np.array([0.5, 1.3, 2.0])
TIMES = np.linspace(0, 2, 7)


@pytest.mark.slow_cases("None-Radau", "None-LSODA", "None-BDF")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("t_eval", [None, TIMES])
def test_start_and_parameters(method, t_eval):
    """The start and both parameters of logistic growth, of which the solution is known."""
    used = []

    def f(p):
        run = solve_ivp(
            logistic, (0, 2), [p[0]], method, t_eval, args=(p[1], p[2]), **tight(method)
        )
        used[:] = [fwdad.stop_gradient(run.t)]
        return run.y[0]

    y, J = fwdad.value_and_jacobian(f, POINT, mode="forward")
    plain = solve_ivp(logistic, (0, 2), POINT[:1], method, t_eval, args=(1.3, 2.0), **tight(method))
    assert_array_equal(y, plain.y[0])
    expected = fwdad.jacobian(lambda p: exact(used[0], *p), POINT)
    assert_allclose(J, expected, atol=CLOSE.get(method, 1e-7))
    assert_allclose(fwdad.jacobian(f, POINT, mode="reverse"), J, rtol=1e-9, atol=1e-12)


@pytest.mark.slow_cases("Radau", "LSODA", "BDF", "RK23", "RK45")
@pytest.mark.parametrize("method", METHODS)
def test_second_derivatives(method):
    def end(p):
        return solve_ivp(
            lambda t, y: p[1] * y * (1 - y / p[2]), (0, 2), p[:1], method, **tight(method)
        ).y[0, -1]

    H = fwdad.hessian(end, POINT)
    assert_allclose(H, H.T, rtol=1e-9)
    assert_allclose(H, fwdad.hessian(lambda p: exact(2.0, *p), POINT), atol=3e-5)
    twice = fwdad.jacobian(lambda p: fwdad.jacobian(end, p), POINT, mode="forward")
    assert_allclose(twice, H, rtol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_backward_in_time(method):
    def f(p):
        args = (p[1], p[2])
        return solve_ivp(
            logistic, (2, 0), p[:1], method, [1.7, 1.1, 0], args=args, **tight(method)
        ).y[0]

    expected = fwdad.jacobian(lambda p: exact(np.array([1.7, 1.1, 0]) - 2, *p), POINT)
    assert_allclose(fwdad.jacobian(f, POINT), expected, atol=CLOSE.get(method, 1e-7))


@pytest.mark.slow_cases("reverse-Radau", "reverse-LSODA")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_ends_times_and_dense_output(method, mode):
    """What moves with the ends of the interval, with t_eval, and between the steps."""

    def solved(p, **options):
        options = {**tight(method), **options}
        return solve_ivp(logistic, (p[3], p[4]), p[:1], method, args=(p[1], p[2]), **options)

    def f(p):
        last = solved(p)
        asked = solved(p, t_eval=[p[5], p[4]])
        between = solved(p, dense_output=True).sol
        return np.concatenate(
            [
                last.y[:, -1],
                last.t[-1:],
                asked.y[0],
                between(p[5]),
                between(np.array([0.7, 1.6]))[0],
            ]
        )

    def expected(p):
        times = np.array([p[4], p[5], p[4], p[5], 0.7, 1.6]) - p[3]
        y = exact(times, *p[:3])
        return np.concatenate([y[:1], p[4:5], y[1:]])

    p = np.array([*POINT, 0.1, 1.9, 1.3])
    y, J = fwdad.value_and_jacobian(f, p, mode=mode)
    assert_allclose(y, expected(p), atol=3e-6)
    assert_allclose(J, fwdad.jacobian(expected, p), atol=2e-5)


def test_second_derivatives_by_the_ends():
    def f(p):
        run = solve_ivp(
            logistic, (p[3], p[4]), p[:1], args=(p[1], p[2]), dense_output=True, **TIGHT
        )
        return run.y[0, -1] * run.sol(p[5])[0]

    def expected(p):
        return exact(p[4] - p[3], *p[:3]) * exact(p[5] - p[3], *p[:3])

    p = np.array([*POINT, 0.1, 1.9, 1.3])
    assert_allclose(fwdad.hessian(f, p), fwdad.hessian(expected, p), atol=1e-6)


@pytest.mark.slow_cases("BDF", "LSODA", "DOP853", "RK23")
@pytest.mark.parametrize("method", METHODS)
def test_events(method):
    """A stone that is thrown up: when and how fast it falls, and where it is highest."""

    def stone(t, y, g):
        return [y[1], -g]

    def ground(t, y, g):
        return y[0]

    def top(t, y, g):
        return y[1]

    ground.terminal, ground.direction = True, -1

    def f(p):
        run = solve_ivp(
            stone, (0, 10), [0.0, p[0]], method, events=[ground, top], args=(p[1],), **tight(method)
        )
        assert run.status == 1
        (fall,), (highest,) = run.t_events
        return np.array([fall, highest, run.y_events[1][0, 0], run.y[1, -1], run.t[-1]])

    def expected(p):
        v, g = p
        return np.array([2 * v / g, v / g, v**2 / (2 * g), -v, 2 * v / g])

    p = np.array([5.0, 9.81])
    for mode in ("forward", "reverse"):
        y, J = fwdad.value_and_jacobian(f, p, mode=mode)
        assert_allclose(y, expected(p), rtol=1e-5)
        assert_allclose(J, fwdad.jacobian(expected, p), rtol=1e-4, atol=1e-5)
    for k in (0, 2, 3):
        H = fwdad.hessian(lambda p, k=k: f(p)[k], p)
        assert_allclose(H, fwdad.hessian(lambda p, k=k: expected(p)[k], p), rtol=1e-3, atol=1e-5)


def test_an_event_that_reads_a_parameter():
    """When an exponential passes a level: the logarithm of the level."""

    def when(level):
        run = solve_ivp(lambda t, y: y, (0, 3), [1.0], events=lambda t, y: y[0] - level, **TIGHT)
        return run.t_events[0][0]

    assert_allclose(fwdad.derivative(when, 2.0), 0.5, rtol=1e-7)
    assert_allclose(fwdad.grad(when)(2.0), 0.5, rtol=1e-7)
    assert_allclose(fwdad.hessian(when, 2.0), -0.25, rtol=1e-6)


def test_an_event_by_a_jump_has_no_derivative():
    def when(c):
        jumps = lambda t, y: np.sign(t - 1) + 0 * c * y[0]  # noqa: E731
        run = solve_ivp(lambda t, y: c * y, (0, 3), [1.0], events=jumps)
        return run.t_events[0][0]

    with pytest.raises(UndefinedDerivativeError, match="has no derivative"):
        fwdad.derivative(when, 2.0)


@pytest.mark.parametrize("method", ["RK45", "DOP853", "BDF"])
def test_complex_states(method):
    """A rotation that is damped by its own size, which no holomorphic function is."""

    def turn(t, y, w):
        return 1j * w * y - 0.5 * y * (y * np.conj(y)).real

    def f(p):
        run = solve_ivp(turn, (0, 1), [p[0] + 0.3j], method, args=(p[1],), rtol=1e-8, atol=1e-10)
        return np.array([run.y[0, -1].real, run.y[0, -1].imag])

    def by_parts(p):
        def split(t, z):
            size = z[0] ** 2 + z[1] ** 2
            return [-p[1] * z[1] - 0.5 * z[0] * size, p[1] * z[0] - 0.5 * z[1] * size]

        return solve_ivp(split, (0, 1), [p[0], 0.3], "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]

    p = np.array([0.8, 2.0])
    h = 1e-5
    J = np.array([(by_parts(p + h * e) - by_parts(p - h * e)) / (2 * h) for e in np.eye(2)]).T
    assert_allclose(fwdad.jacobian(f, p, mode="forward"), J, atol=1e-5)
    assert_allclose(fwdad.jacobian(f, p, mode="reverse"), J, atol=1e-5)


@pytest.mark.parametrize("method", ["RK45", "Radau"])
def test_vectorized_and_lists(method):
    def f(k):
        run = solve_ivp(
            lambda t, y: [y[1], -k * y[0]], (0, 1), [1.0, 0.0], method, vectorized=True, **TIGHT
        )
        return run.y[0, -1]

    assert_allclose(fwdad.derivative(f, 4.0), -np.sin(2.0) / 4, rtol=1e-6)
    assert_allclose(fwdad.grad(f)(4.0), -np.sin(2.0) / 4, rtol=1e-6)


@pytest.mark.slow
def test_stiff_parameters():
    """The rates of Robertson's reaction, beside differences of a tighter solution."""
    rates = np.array([0.04, 1e4, 3e7])

    def f(k, method="BDF", **tolerance):
        def reaction(t, y):
            slow, back, fast = k[0] * y[0], k[1] * y[1] * y[2], k[2] * y[1] ** 2
            return np.array([back - slow, slow - back - fast, fast])

        run = solve_ivp(reaction, (0, 1e3), [1.0, 0, 0], method, **tolerance)
        return run.y[:, -1]

    steps = 1e-4 * np.diag(rates)
    tight = {"method": "Radau", "rtol": 1e-11, "atol": 1e-15}
    J = np.array([(f(rates + h, **tight) - f(rates - h, **tight)) / 2e-4 for h in steps]).T
    for method in ("BDF", "Radau", "LSODA"):
        found = fwdad.jacobian(f, rates, args=(method,), kwargs={"rtol": 1e-8, "atol": 1e-12})
        assert_allclose(found * rates, J, rtol=1e-4, atol=1e-7)


def test_a_closure_is_traced_once():
    """Each solve has a new function over other values, and the tape is that of the first."""

    def f(k):
        rate = lambda y: -k * y  # noqa: E731
        return solve_ivp(lambda t, y: rate(y), (0, 1), [1.0], **TIGHT).y[0, -1]

    for k in (1.0, 2.0, 3.0):
        assert_allclose(fwdad.grad(f)(k), -np.exp(-k), rtol=1e-7)


def test_fun_is_called_as_often_as_scipy_does():
    """What fun does beside its value happens once, where it is traced and where it is not."""

    def f(k, calls):
        def counted(t, y):
            calls.append(t)
            return -k * y

        return solve_ivp(counted, (0, 1), [1.0]).y[0, -1]

    plain, found = [], []
    f(2.0, plain)
    fwdad.derivative(lambda k: f(k, found), 2.0)
    assert found == plain
    found.clear()
    fwdad.grad(lambda k: f(k, found))(2.0)
    assert found == plain


class Decay:
    """A right-hand side with state, which has no tape."""

    def __init__(self, k):
        self.k = k

    def __call__(self, t, y):
        return -self.k * y


@pytest.mark.slow_cases("Radau")
@pytest.mark.parametrize("method", ["RK45", "Radau"])
def test_a_callable_object(method):
    f = lambda k: solve_ivp(Decay(k), (0, 1), [1.0], method, **TIGHT).y[0, -1]  # noqa: E731
    assert_allclose(fwdad.derivative(f, 2.0), -np.exp(-2.0), rtol=1e-6)
    assert_allclose(fwdad.grad(f)(2.0), -np.exp(-2.0), rtol=1e-6)


def test_a_class_of_the_users():
    class Halves(scipy.integrate.RK45):
        """A subclass, whose steps nobody knows."""

    f = lambda k: solve_ivp(lambda t, y: -k * y, (0, 1), [1.0], Halves, **TIGHT).y[0, -1]  # noqa: E731
    assert_allclose(fwdad.grad(f)(2.0), -np.exp(-2.0), rtol=1e-6)


def test_compiled_right_hand_sides():
    rates = fwdad.jit(logistic)
    f = lambda p: solve_ivp(rates, (0, 2), p[:1], args=(p[1], p[2]), **TIGHT).y[0, -1]  # noqa: E731
    expected = fwdad.grad(lambda p: exact(2.0, *p))(POINT)
    assert_allclose(fwdad.grad(f)(POINT), expected, rtol=1e-6)
    assert_allclose(fwdad.jacfwd(f)(POINT), expected, rtol=1e-6)


def test_the_pullback_is_linear_in_duals():
    """A vjp made outside is pushed forward in its cotangent."""
    _, pull = fwdad.vjp(
        lambda p: solve_ivp(logistic, (0, 2), p[:1], args=(p[1], p[2])).y[0, -1:], POINT
    )
    J = pull(np.ones(1))
    assert_allclose(fwdad.jvp(pull, np.ones(1), np.full(1, 2.0))[1], 2 * J, rtol=1e-12)


@pytest.mark.parametrize("derivative", [fwdad.derivative, fwdad.grad])
def test_what_fun_leaves_behind_is_that_of_one_solve(derivative):
    """A counter that it rebinds, and a list that holds a number with a derivative."""
    left = []

    def f(k):
        count, seen = 0, [k]

        def rate(t, y):
            nonlocal count
            count += 1
            seen.append(t)
            return -seen[0] * y

        found = solve_ivp(rate, (0, 1), [1.0], **TIGHT)
        left.append((count, len(seen) - 1, found.nfev))
        return found.y[0, -1]

    assert_allclose(derivative(f)(2.0), -np.exp(-2.0), rtol=1e-7)
    f(2.0)
    assert left == [(left[-1][2],) * 3] * len(left)


def stores_a_number(k, kept):
    def rate(t, y):
        kept["last"] = k * y[0]
        return -k * y

    return rate


def stores_an_attribute(k, kept):
    def rate(t, y):
        holder = kept["holder"]
        holder.last = [k * y]
        return -k * y

    kept["holder"] = types.SimpleNamespace()
    return rate


def stores_into_an_array(k, kept):
    work = kept["last"] = np.empty(1)

    def rate(t, y):
        work[0] = k * y[0]
        return -k * y

    return rate


@pytest.mark.slow_cases("stores_into_an_array-grad", "stores_an_attribute-grad")
@pytest.mark.parametrize("derivative", [fwdad.derivative, fwdad.grad])
@pytest.mark.parametrize(
    "store", [stores_a_number, stores_an_attribute, stores_into_an_array], ids=lambda f: f.__name__
)
def test_what_fun_stores_is_not_taken_for_a_constant(derivative, store):
    """The solver has run fun on plain numbers; after the call, plain numbers they are."""
    kept = {}

    def f(k, *, read):
        kept.clear()
        found = solve_ivp(store(k, kept), (0, 1), [1.0], **TIGHT)
        last = kept["last"] if "last" in kept else kept["holder"].last[0]
        return found.y[0, -1] + (np.sum(last) if read else 0.0)

    with pytest.raises(StaleValueError, match="by a function that a solver ran"):
        derivative(lambda k: f(k, read=True))(2.0)
    assert_allclose(derivative(lambda k: f(k, read=False))(2.0), -np.exp(-2.0), rtol=1e-7)
    assert_allclose(f(2.0, read=True), 3 * np.exp(-2.0), rtol=1e-6)


@pytest.mark.parametrize("derivative", [fwdad.derivative, fwdad.grad])
def test_stored_values_that_do_not_depend_on_the_solution(derivative):
    """What depends on the parameter alone keeps its derivative; times and counts are constants."""

    def f(k):
        kept = {"last": -1.0, "count": 0, "rate": None}

        def rate(t, y):
            kept["rate"] = 2 * k
            kept["count"] += 1
            if t - kept["last"] > 0.1:
                kept["last"] = t
            return -k * y

        y = solve_ivp(rate, (0, 1), [1.0], **TIGHT).y[0, -1]
        return kept["rate"] * y + 0 * kept["last"] + 0 * kept["count"]

    # 2 k e⁻ᵏ
    assert_allclose(derivative(f)(2.0), (2 - 4) * np.exp(-2.0), rtol=1e-7)


@pytest.mark.slow_cases("grad")
@pytest.mark.parametrize("derivative", [fwdad.derivative, fwdad.grad])
def test_a_work_array_that_fun_returns_each_time(derivative):
    def f(k):
        work = np.empty(2)

        def rate(t, y):
            work[0], work[1] = -k * y[0], k * y[0] - y[1]
            return work

        return solve_ivp(rate, (0, 1), [1.0, 0.0], "RK45", rtol=1e-9, max_step=0.05).y[1, -1]

    def exact(k):
        return k * (np.exp(-k) - np.exp(-1)) / (1 - k)

    assert_allclose(derivative(f)(2.0), fwdad.derivative(exact, 2.0), rtol=1e-5)


def test_effects_of_a_watched_solve_are_made_once(capsys):
    def f(k):
        kept = []

        def rate(t, y):
            print(f"{t:.3f}")
            kept.append(k * y[0])
            return -k * y

        return solve_ivp(rate, (0, 1), [1.0]).y[0, -1]

    f(2.0)
    once = capsys.readouterr().out
    fwdad.derivative(f, 2.0)
    assert capsys.readouterr().out == once


@pytest.mark.parametrize("derivative", [fwdad.derivative, fwdad.grad])
def test_arguments_that_fun_writes_into(derivative):
    """They are the caller's own, and hold what a plain solve leaves there."""
    lengths = []

    def f(k):
        rates = [k]

        def fun(t, y, rates):
            rates.append(2 * k)
            return -rates[0] * y

        y = solve_ivp(fun, (0, 1), [1.0], args=(rates,), **TIGHT).y[0, -1]
        lengths.append(len(rates))
        return y * rates[-1]

    assert_allclose(derivative(f)(2.0), (2 - 4) * np.exp(-2.0), rtol=1e-7)
    f(2.0)
    assert set(lengths) == {lengths[-1]}
