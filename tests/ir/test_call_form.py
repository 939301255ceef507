"""Functions that are called with every argument by its name: nothing changes by it."""

import gc
import inspect
import weakref

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.rules.core.by_position import by_position
from fwdad.rules.core.registry import find_rule
from tests.differences import difference_along
from tests.rules.case import Case
from tests.transforms.forward.rule_cases import OnTape
from tests.transforms.forward.test_rules import CASES, FIRST, is_refused
from tests.transforms.reverse.test_rules import check

X = np.array([0.4, -1.3, 0.7])


def all_named(case):
    """The same call with names for all arguments; None where Python does not take them so."""
    rule = find_rule(case.function)
    own = str(getattr(case.function, "__module__", "")).startswith("fwdad.")
    if isinstance(case.function, np.ufunc) or rule is None or rule.kind == "constant" or own:
        return None
    try:
        parameters = list(inspect.signature(case.function).parameters.values())
    except (TypeError, ValueError):
        return None
    given = parameters[: len(case.args)]
    if len(given) < len(case.args) or any(p.kind is not p.POSITIONAL_OR_KEYWORD for p in given):
        return None
    named = {p.name: a for p, a in zip(given, case.args, strict=True)}
    return Case(case.function, check=case.check, **named, **case.options)


def rows():
    found = []
    for case, first in zip(CASES, FIRST, strict=True):
        named = all_named(case)
        if case.args and named is not None and not is_refused(case):
            marks = () if first else pytest.mark.slow
            found.append(pytest.param(named, id=str(named), marks=marks))
    return found


@pytest.mark.parametrize("case", rows())
def test_rules_on_the_tape(case):
    held = OnTape(case, widths=(2,))
    pattern = held.trial.patterns()[-1]  # all that can be active
    held.check(pattern, 2)
    check(held, pattern)


@pytest.mark.parametrize(
    ("by_position", "by_name"),
    [
        (lambda a: a[np.argsort(a)] * np.arange(3), lambda a: a[np.argsort(a=a)] * np.arange(3)),
        (lambda a: a * a[np.argmax(a)], lambda a: a * a[np.argmax(a=a)]),
        (lambda a: a + np.round(a, 1), lambda a: a + np.round(a=a, decimals=1)),
        (
            lambda a: a * np.searchsorted(np.arange(3.0), a),
            lambda a: a * np.searchsorted(a=np.arange(3.0), v=a),
        ),
        (lambda a: a * np.shape(a)[0], lambda a: a * np.shape(a=a)[0]),
        (lambda a: a + np.ones_like(a), lambda a: a + np.ones_like(a=a)),
        (lambda a: np.copy(a) * a, lambda a: np.copy(a=a) * a),
        (lambda a: np.asarray(a) * a, lambda a: np.asarray(a=a) * a),
        (lambda a: np.pad(a, 1) ** 2, lambda a: np.pad(array=a, pad_width=1) ** 2),
        (lambda a: np.full(2, a[1]) ** 2, lambda a: np.full(shape=2, fill_value=a[1]) ** 2),
        (lambda a: np.diff(a, 2) ** 2, lambda a: np.diff(n=2, a=a) ** 2),
    ],
)
def test_functions_of_numpy(by_position, by_name):
    def f(a):
        return np.sum(np.sin(by_name(a)))

    wanted = fwdad.jacobian(lambda a: np.sum(np.sin(by_position(a))), X, mode="forward")
    assert_allclose(fwdad.jacobian(f, X, mode="forward"), wanted, rtol=1e-14)
    assert_allclose(fwdad.grad(f)(X), wanted, rtol=1e-14)
    assert_allclose(fwdad.jit(fwdad.jacfwd(f), backend="numpy")(X), wanted, rtol=1e-14)


@pytest.mark.usefixtures("young_heap")
def test_functions_of_the_user_are_not_kept():
    def f(x, n):
        return x * n

    assert by_position(f, (), {"x": 1.0, "n": 2}) == ((), {"x": 1.0, "n": 2})
    held = weakref.ref(f)
    del f
    gc.collect()
    assert held() is None


def test_slopes_of_arguments_by_name_are_not_lost():
    f = fwdad.jit(fwdad.jacfwd(lambda x: np.sinc(x=x)), backend="numpy")
    with np.errstate(all="ignore"):
        differences = difference_along(np.sinc, X, np.ones_like(X))
    assert_allclose(np.diagonal(f(X)), differences, rtol=1e-8)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.multiply(x, 2, dtype=float) ** 2,
        lambda x: np.add(x, x, casting="same_kind") * x,
        lambda x: np.exp(x, order="K") + np.sin(x, subok=True),
        lambda x: np.sqrt(x * x + 1.0, dtype=np.float32),
    ],
)
def test_options_of_ufuncs_are_numpys(f):
    wanted = fwdad.jacobian(f, X, mode="forward")
    rtol = 1e-6 if f(X).dtype == np.float32 else 1e-14
    assert_allclose(fwdad.jit(fwdad.jacfwd(f), backend="numpy")(X), wanted, rtol=rtol)
    assert_allclose(fwdad.jacrev(f)(X), wanted, rtol=rtol)
