"""`supported` is never wrong: each answer is held against the cases of the rules' tests."""

from collections import defaultdict

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.api.support import functions_with_rules
from fwdad.codegen.numba_support import have_numba
from fwdad.errors import UnsupportedTypeError
from fwdad.rules.core.registry import find_rule, function_name
from fwdad.tangents.composite import flatten
from fwdad.testing.trial import make_trial
from tests.tiers import every
from tests.transforms.forward.rule_cases import all_cases


def _by_function():
    """The cases of each function of NumPy's and SciPy's; the names in order."""
    found = defaultdict(list)
    for _, case in all_cases():
        if not function_name(case.function).startswith("fwdad."):
            found[case.function].append(case)
    return sorted(found.items(), key=lambda item: function_name(item[0]))


FUNCTIONS = [
    pytest.param(f, cases, id=function_name(f))
    for f, cases in _by_function()
    if find_rule(f) is not None
]


def active_in(case):
    """The positions of the arguments that a case's derivative is checked in."""
    trial = make_trial(case.function, case.args, dict(case.options), (1,), np.random.default_rng(0),
                       case.check.get("argnums"))  # fmt: skip
    return sorted({k for k, *_ in trial.paths})


def positional(case):
    """Whether these stand in front, as ``supported`` is told."""
    active = active_in(case)
    return bool(active) and active[-1] < len(case.args)


def agree_in_a_product(case, active):
    """Whether the pullback is the adjoint of the pushforward, of a function of real arrays."""
    x, *args = case.args
    given = {"args": tuple(args), "kwargs": dict(case.options), "argnums": active}
    rng = np.random.default_rng(0)
    v = rng.standard_normal(case.args[active].shape)
    with np.errstate(all="ignore"):
        y, y_dot = fwdad.jvp(case.function, x, v, **given)
        _, pullback = fwdad.vjp(case.function, x, **given)
    leaves, structure = flatten(y)
    if structure.kind != "leaf" or np.asarray(leaves[0]).dtype != float:
        return
    y_bar = rng.standard_normal(np.shape(y))
    expected = np.sum(y_bar * y_dot)
    assert_allclose(np.sum(pullback(y_bar) * v), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("f", "cases"), every(20, FUNCTIONS))
def test_agrees_with_the_cases(f, cases):
    """Forward, as tests/rules has checked each case; in reverse, as the products agree."""
    general = fwdad.supported(f)
    real = [case for case in cases if positional(case)]
    answers = [fwdad.supported(f, *case.args, **case.options) for case in real]
    assert all(answer.forward for answer in answers)
    if real:
        assert general.forward
    if answers and all(answer.reverse for answer in answers):
        assert general.reverse
    if answers and not any(answer.reverse for answer in answers):
        assert not general.reverse
    rule = find_rule(f)
    if rule.kind not in ("elementwise", "linear", "multilinear"):
        return
    for case, answer in zip(real, answers, strict=True):
        arrays = [k for k in active_in(case) if isinstance(case.args[k], np.ndarray)]
        if answer.reverse and arrays and case.args[arrays[0]].dtype == np.float64:
            agree_in_a_product(case, arrays[0])


@pytest.mark.skipif(not have_numba(), reason="Numba compiles")
@pytest.mark.parametrize(("f", "cases"), every(40, FUNCTIONS))
def test_what_is_compiled_is(f, cases):
    """The answer is what ``explain`` says of compiled code that has run, and has f's value."""
    case = next((case for case in cases if positional(case)), None)
    first = None if case is None else case.args[0]
    if not isinstance(first, np.ndarray) or first.dtype != np.float64 or active_in(case) != [0]:
        pytest.skip("its first case has not one real array alone that is active")
    answer = fwdad.supported(f, *case.args, **case.options)

    def called(x):
        return f(x, *case.args[1:], **case.options)

    try:
        said = fwdad.explain(called, first.copy())
    except fwdad.errors.FwdadError:
        assert not answer.compiled
        return
    if answer.compiled:
        assert said.endswith("run by Numba")
    else:
        pushed = fwdad.explain(lambda x: fwdad.jvp(called, x, np.ones(x.shape)), first.copy())
        assert not (said.endswith("run by Numba") and pushed.endswith("run by Numba"))


def test_functions_that_have_rules_are_listed():
    listed = functions_with_rules()
    assert len(listed) > 500
    assert listed["numpy.sin"] is np.sin
    assert not any(name.startswith("fwdad.") for name in listed)
    tested = {function_name(f) for f, _ in _by_function() if find_rule(f) is not None}
    assert tested <= listed.keys()


# -- what it says


def test_three_answers():
    answer = fwdad.supported(np.linalg.solve)
    assert answer.forward
    assert answer.reverse
    assert answer.compiled.yes == have_numba()
    assert answer.argnums == ("a", "b")
    assert answer.tried == "float64[3, 3], float64[3]"
    assert "forward   yes: frule" in str(answer)
    assert "tried with (float64[3, 3], float64[3])" in str(answer)


def test_with_arguments_it_is_about_them():
    def f(x, k):
        return np.repeat(x, k, axis=0)

    x = np.ones((3, 2))
    for k, compiled in ((2, have_numba()), ([2, 0, 1], False)):
        answer = fwdad.supported(f, x, k)
        assert answer.forward
        assert answer.reverse
        assert answer.compiled.yes == compiled
    assert not fwdad.supported(lambda x: np.sum(x) * float(str(x[0])), np.ones(3)).forward
    assert "no positional argument holds floats" in fwdad.supported(f, 2, 3).reason


@pytest.mark.skipif(not have_numba(), reason="Numba compiles")
def test_arguments_that_are_not_differentiated_are_constants():
    """As in a program where they are written, not as numbers that come from outside."""
    a, count = np.ones((3, 4, 2)), 3

    def pushed(f):
        return fwdad.explain(lambda x: fwdad.jvp(f, x, np.ones(x.shape)), a)

    assert pushed(lambda x: np.repeat(x, 3)).endswith("run by Numba")
    assert not pushed(lambda x: np.repeat(x, count)).endswith("run by Numba")
    assert fwdad.supported(np.repeat, a, 3).compiled
    assert fwdad.supported(np.repeat, a, 2, axis=1).compiled
    assert fwdad.supported(np.repeat, a, repeats=2, axis=-1).compiled


def test_arguments_stay_as_they_are():
    x = np.array([3.0, 1.0, 2.0])
    fwdad.supported(lambda x: x.sort(), x)
    fwdad.supported(np.ndarray.sort, x)
    assert x.tolist() == [3.0, 1.0, 2.0]


def test_own_functions_are_not_called_without_arguments():
    def f(x):
        raise AssertionError

    assert "not tried" in fwdad.supported(f).reverse.reason
    fwdad.elementwise(f, lambda x, y: 2 * x)
    assert "not tried" in fwdad.supported(f).reverse.reason


def test_draws():
    state = np.random.get_state()[1].copy()
    for f in (np.random.normal, np.random.shuffle, np.random.Generator.normal):
        assert not fwdad.supported(f)
        assert "draw" in fwdad.supported(f).reason
    assert np.array_equal(np.random.get_state()[1], state)


def test_what_is_no_function():
    with pytest.raises(UnsupportedTypeError, match="a function"):
        fwdad.supported(3.0)
