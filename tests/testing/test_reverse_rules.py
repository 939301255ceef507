"""``check_rrule`` passes right reverse rules, and catches each planted fault by its own check."""

import numpy as np
import pytest

import fwdad
from fwdad.rules.core.registry import RULES
from fwdad.rules.core.reverse_rules import RRULES
from fwdad.testing import CheckError, check_rrule

X = np.array([0.4, 1.3, -0.7])


@pytest.fixture(autouse=True)
def _registered():
    rules, reverse = dict(RULES), dict(RRULES)
    yield
    for table, before in ((RULES, rules), (RRULES, reverse)):
        for f in set(table) - set(before):
            del table[f]


def with_rule(pull, value=None):
    """``w * sin(x)`` with a reverse rule: ``pull(y_bar, x, w)`` returns the cotangents."""

    def f(x, w):
        return w * np.sin(x)

    @fwdad.rrule(f)
    def f_rrule(primals):
        x, w = primals
        y = f(x, w) if value is None else value(x, w)
        return y, lambda y_bar: pull(y_bar, x, w)

    return f


def right(y_bar, x, w):
    return y_bar * w * np.cos(x), np.sum(y_bar * np.sin(x))


@pytest.mark.parametrize("x", [X, X[:1], X[:0], np.outer(X, X[:2]), X.astype(np.float32), X + 0.5j])
def test_right_rule(x):
    def conjugated(y_bar, x, w):
        return y_bar * np.conj(w * np.cos(x)), np.real(np.sum(y_bar * np.conj(np.sin(x))))

    check_rrule(with_rule(conjugated), x, 1.5)


def test_a_number():
    check_rrule(with_rule(right), 0.3, 1.5)


def test_parts_lists_and_options():
    def f(x, weights, power=2):
        return np.sum(np.sin(x) * weights[0]) ** power, {"a": x * weights[1], "count": len(x)}

    @fwdad.rrule(f)
    def f_rrule(primals, power):
        x, (first, second) = primals
        total = np.sum(np.sin(x) * first)

        def pullback(y_bar):
            total_bar = y_bar[0] * power * total ** (power - 1)
            bars = [np.sum(total_bar * np.sin(x)), np.sum(y_bar[1]["a"] * x)]
            return total_bar * np.cos(x) * first + y_bar[1]["a"] * second, bars

        return f(x, (first, second), power), pullback

    check_rrule(f, X, [3.0, 4.0], power=3)
    check_rrule(f, X, [3.0, 4.0])


def test_some_arguments():
    f = with_rule(lambda y_bar, x, w: (y_bar * w * np.cos(x), None))
    check_rrule(f, X, 1.5, argnums=["x"])
    with pytest.raises(CheckError, match=r"differences: argument w.*\n.*None says that it is zero"):
        check_rrule(f, X, 1.5)


def test_one_of_two_ways_backwards():
    """A rule for what compiled code computes: first order only."""

    def through_text(x):
        return np.array([float.fromhex(float(v).hex()) for v in x])

    def f(x):
        return through_text(x**2)

    @fwdad.rrule(f)
    def f_rrule(primals):
        (x,) = primals
        return through_text(x**2), lambda y_bar: (through_text(2 * x) * y_bar,)

    check_rrule(f, X, second_order=False)
    with pytest.raises(CheckError, match="second_order=False") as caught:
        check_rrule(f, X)
    assert caught.value.check == "second order"


def affine(y_bar, x, w):
    return y_bar * w * np.cos(x) + 1e-9, np.sum(y_bar * np.sin(x))


def dropped_term(y_bar, x, w):
    return y_bar * w * np.cos(x), 0.0


def wrong_shape(y_bar, x, w):
    return np.sum(y_bar * w * np.cos(x)), np.sum(y_bar * np.sin(x))


def bare_cotangent(y_bar, x, w):
    return y_bar * w * np.cos(x)


def one_too_few(y_bar, x, w):
    return (y_bar * w * np.cos(x),)


def not_finite(y_bar, x, w):
    return np.nan * y_bar, np.sum(y_bar * np.sin(x))


def frozen(y_bar, x, w):
    """Right, but its own derivative is lost."""
    return y_bar * w * fwdad.stop_gradient(np.cos(x)), np.sum(y_bar * np.sin(x))


PLANTED = {
    affine: "linearity",
    dropped_term: "differences",
    wrong_shape: "structure",
    bare_cotangent: "structure",
    one_too_few: "structure",
    not_finite: "linearity",
    frozen: "second order",
}


@pytest.mark.parametrize("pull", PLANTED, ids=lambda f: f.__name__)
def test_planted_pullback(pull):
    with pytest.raises(CheckError) as caught:
        check_rrule(with_rule(pull), X, 1.5)
    assert caught.value.check == PLANTED[pull]


def test_a_pullback_that_changes_what_it_reads():
    def worn(y_bar, x, w):
        x_bar = y_bar * w * np.cos(x)
        x += 0.1
        return x_bar, np.sum(y_bar * np.sin(x))

    with pytest.raises(CheckError) as caught:
        check_rrule(with_rule(worn), X, 1.5)
    assert caught.value.check == "repeated"


def test_a_pullback_that_counts_its_calls():
    calls = []

    def counted(y_bar, x, w):
        calls.append(None)
        return y_bar * w * np.cos(x) * (1 + (len(calls) > 3)), np.sum(y_bar * np.sin(x))

    with pytest.raises(CheckError):
        check_rrule(with_rule(counted), X, 1.5)


def test_planted_value():
    with pytest.raises(CheckError, match="function's value") as caught:
        check_rrule(with_rule(right, lambda x, w: w * np.sin(x) + 1e-9), X, 1.5)
    assert caught.value.check == "primal"
    with pytest.raises(CheckError, match=r"shape|rank 0"):
        check_rrule(with_rule(right, lambda x, w: np.sum(w * np.sin(x))), X, 1.5)


def test_a_rule_that_writes():
    def rule(primals):
        x, w = primals
        np.sin(x, out=x)
        return w * x, lambda y_bar: (y_bar, np.sum(y_bar))

    f = with_rule(right)
    fwdad.rrule(f, override=True)(rule)
    with pytest.raises(CheckError, match="writes into its argument `x`"):
        check_rrule(f, X, 1.5)


def test_no_rule():
    with pytest.raises(fwdad.errors.MissingRuleError, match="has no rrule: register one with @"):
        check_rrule(np.sin, X)


def test_kinks_are_distinguished_from_mistakes():
    def f(x):
        return np.abs(x)

    @fwdad.rrule(f)
    def f_rrule(primals):
        (x,) = primals
        return np.abs(x), lambda y_bar: (np.sign(x) * y_bar,)

    check_rrule(f, X)
    with pytest.raises(CheckError, match="away from kinks"):
        check_rrule(f, np.array([0.0, 1e-9]))


def test_tolerance_with_a_reason():
    with pytest.raises(ValueError, match="reason"):
        check_rrule(with_rule(right), X, 1.5, rtol=1e-3)
    check_rrule(with_rule(right), X, 1.5, rtol=1e-3, reason="as a test")
