"""What the harness finds of broken contracts: writes, memory, lanes, and modes of their own."""

import numpy as np
import pytest

import fwdad
from fwdad import ZERO, Chunk
from fwdad.testing import check_frule, check_rrule
from fwdad.testing.frules import failing_checks
from fwdad.testing.trial import CheckError

X = np.array([0.7, 1.1, 1.6])


def fails(check, run):
    with pytest.raises(CheckError) as caught:
        run()
    assert caught.value.check == check, str(caught.value)
    return str(caught.value)


# -- functions that write


def spread(x, c):
    """Write into x; return a number of its old content."""
    total = np.sum(x**2)
    x *= np.sin(x) * c
    return total


def spread_frule(primals, tangents):
    (x, c), (x_dot, c_dot) = primals, tangents
    slope = (np.sin(x) + x * np.cos(x)) * c
    new_dot = slope * x_dot + x * np.sin(x) * c_dot
    return (np.sum(x**2), x * np.sin(x) * c), (np.sum(2 * x * x_dot), new_dot)


def spread_rrule(primals):
    x, c = primals

    def pullback(bars):
        total_bar, new_bar = bars
        slope = (np.sin(x) + x * np.cos(x)) * c
        return 2 * x * total_bar + slope * new_bar, np.sum(x * np.sin(x) * new_bar)

    return (np.sum(x**2), x * np.sin(x) * c), pullback


def writing(register, rule, **options):
    def writes(x, c):
        total = np.sum(x**2)
        x *= np.sin(x) * c
        return total

    register(writes, **options)(rule)
    return writes


def test_right_rules_of_functions_that_write():
    x = X.copy()
    check_frule(writing(fwdad.frule, spread_frule, mutates=(0,)), x, 2.0)
    check_rrule(writing(fwdad.rrule, spread_rrule, mutates=(0,)), x, 2.0)
    both = writing(fwdad.frule, spread_frule, mutates=(0,))
    fwdad.rrule(both, mutates=(0,))(spread_rrule)
    check_frule(both, x, 2.0)
    check_rrule(both, x, 2.0)
    np.testing.assert_array_equal(x, X)


def test_a_function_that_returns_nothing():
    def doubles(x):
        x *= 2.0

    @fwdad.frule(doubles, mutates=(0,))
    def doubles_frule(primals, tangents):
        return (None, 2 * primals[0]), (ZERO, 2 * tangents[0])

    check_frule(doubles, X.copy())


@pytest.mark.parametrize(
    ("planted", "check"),
    [
        (lambda y, new, y_dot, new_dot: ((y, 2 * new), (y_dot, new_dot)), "primal"),
        (lambda y, new, y_dot, new_dot: ((y + 1, new), (y_dot, new_dot)), "primal"),
        (lambda y, new, y_dot, new_dot: ((y, new), (y_dot, 2 * new_dot)), "differences"),
        (lambda y, new, y_dot, new_dot: ((y, new), (ZERO, new_dot)), "differences"),
        (lambda y, new, y_dot, new_dot: ((y, new), (y_dot, new_dot[:1])), "structure"),
        (lambda y, new, y_dot, new_dot: ((y, new), (new_dot, y_dot)), "structure"),
    ],
)
def test_wrong_rules_of_functions_that_write(planted, check):
    def rule(primals, tangents):
        (y, new), (y_dot, new_dot) = spread_frule(primals, tangents)
        return planted(y, new, y_dot, new_dot)

    fails(check, lambda: check_frule(writing(fwdad.frule, rule, mutates=(0,)), X.copy(), 2.0))


@pytest.mark.parametrize("written", [(), (1,)])
def test_writes_that_are_not_declared(written):
    def adds(x, y):
        x += y
        return np.sum(x)

    @fwdad.frule(adds, mutates=written)
    def adds_frule(primals, tangents):
        (x, y), (x_dot, y_dot) = primals, tangents
        total, total_dot = np.sum(x + y), np.sum(x_dot + y_dot)
        if written:
            return (total, y.copy()), (total_dot, y_dot)
        return total, total_dot

    message = fails("writes", lambda: check_frule(adds, X.copy(), X.copy()))
    assert "into x" in message


def test_an_option_that_is_written():
    def adds(x, *, log):
        log += 1.0
        return 2 * x

    @fwdad.frule(adds)
    def adds_frule(primals, tangents, *, log):
        return 2 * primals[0], 2 * tangents[0]

    assert "option log" in fails("writes", lambda: check_frule(adds, X.copy(), log=np.zeros(2)))


def test_an_rrule_of_writes_that_are_not_declared():
    rule = writing(
        fwdad.rrule, lambda primals: (np.sum(primals[0] ** 2), lambda y_bar: (None, None))
    )
    fails("writes", lambda: check_rrule(rule, X.copy(), 2.0))


@pytest.mark.parametrize(
    "planted",
    [
        lambda x_bar, c_bar: (2 * x_bar, c_bar),
        lambda x_bar, c_bar: (x_bar, None),
        lambda x_bar, c_bar: (x_bar[:1], c_bar),
    ],
)
def test_wrong_rrules_of_functions_that_write(planted):
    def rule(primals):
        y, pullback = spread_rrule(primals)
        return y, lambda bars: planted(*pullback(bars))

    function = writing(fwdad.rrule, rule, mutates=(0,))
    with pytest.raises(CheckError):
        check_rrule(function, X.copy(), 2.0)


# -- memory


def front(x):
    return x[:2]


def ruled(returns, function, rule):
    def head(x):
        return function(x)

    fwdad.frule(head, returns=returns)(rule)
    return head


def copied(x):
    return x[:2].copy()


KEPT = np.zeros(2)


def kept(x):
    KEPT[:] = x[:2]
    return KEPT


def front_frule(primals, tangents):
    return primals[0][:2], tangents[0][:2]


def copied_frule(primals, tangents):
    return primals[0][:2].copy(), tangents[0][:2]


@pytest.mark.every(2, first=1)
@pytest.mark.parametrize(
    ("returns", "function", "rule"),
    [
        ("new", copied, copied_frule),
        ("view", front, front_frule),
        ("either", front, front_frule),
        ("either", copied, copied_frule),
    ],
)
def test_memory_that_is_declared(returns, function, rule):
    check_frule(ruled(returns, function, rule), X.copy())


@pytest.mark.parametrize(
    ("returns", "function", "rule"),
    [
        ("new", front, front_frule),
        ("new", front, copied_frule),
        ("new", copied, front_frule),
        ("view", copied, copied_frule),
        ("view", front, copied_frule),
        ("either", front, copied_frule),
        ("new", kept, copied_frule),
    ],
)
def test_memory_that_is_not_what_it_says(returns, function, rule):
    fails("aliasing", lambda: check_frule(ruled(returns, function, rule), X.copy()))


def test_an_rrule_of_a_view():
    def head(x):
        return x[:2]

    @fwdad.rrule(head)
    def head_rrule(primals):
        return primals[0][:2].copy(), lambda y_bar: (np.append(y_bar, 0.0),)

    fails("aliasing", lambda: check_rrule(head, X.copy()))


# -- lanes


@pytest.mark.parametrize("n", [1, 7])
def test_another_number_of_lanes(n):
    def half(x):
        return 0.5 * x

    @fwdad.frule(half)
    def half_frule(primals, tangents):
        return 0.5 * primals[0], Chunk(np.full((n, 3), 0.5))

    fails("structure", lambda: check_frule(half, X))


# -- other modes


def on_a_tape(x):
    return hasattr(x, "__fwdad_symbolic__")


def mode_of(run):
    def half(x):
        return 0.5 * x

    @fwdad.frule(half)
    def half_frule(primals, tangents):
        return 0.5 * primals[0], run(primals[0], tangents[0])

    return half


def test_a_rule_that_is_another_one_on_a_tape():
    half = mode_of(lambda x, t: (0.25 if on_a_tape(x) else 0.5) * t)
    fails("tape", lambda: check_frule(half, X))
    assert failing_checks(half, (X,)) == {}
    assert set(failing_checks(half, (X,), modes=True)) == {"tape"}
    check_frule(half, X, modes=False)


def test_a_rule_that_is_another_one_backwards():
    def back(x, t):
        return (0.25 if on_a_tape(x) and t.n == 1 else 0.5) * t

    fails("reverse", lambda: check_frule(mode_of(back), X))


def test_a_rule_that_fails_on_a_tape():
    def fail(x, t):
        if x[0] > 100.0 or on_a_tape(x):
            raise KeyError("lost")
        return 0.5 * t

    check_frule(mode_of(fail), X)  # it is run whole there


def test_arguments_in_lists_and_complex_numbers():
    def total(parts, z, *, power=2, names=("a", "b")):
        return parts[0] * parts[1]["w"] ** power + np.abs(z) ** 2 * len(names)

    @fwdad.frule(total)
    def total_frule(primals, tangents, *, power, names):
        (parts, z), (parts_dot, z_dot) = primals, tangents
        a, w = parts[0], parts[1]["w"]
        if isinstance(parts_dot, list):
            a_dot, w_dot = parts_dot[0], parts_dot[1]["w"]
        else:
            a_dot = w_dot = ZERO
        y = a * w**power + np.abs(z) ** 2 * len(names)
        z_part = np.real(np.conj(z) * z_dot) * 2 * len(names)
        return y, w**power * a_dot + a * power * w ** (power - 1) * w_dot + z_part

    check_frule(total, [X, {"w": X + 1}], X * (1 + 2j), power=3, second_order=False)
