"""Every rule on the tape: the cases of tests/rules, traced, pushed forward, and compared.

The reference is the same rule on arrays and chunks, which tests/rules compares with differences.
"""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy.fft
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import MissingRuleError, UntraceableError
from fwdad.ir.ops import values_in
from fwdad.rules.core.registry import find_rule, function_name
from fwdad.transforms.forward import push_forward
from tests.rules.case import Case
from tests.transforms.forward.rule_cases import OnTape, all_cases

LIMITS = Path(fwdad.__file__).parent / "ir" / "limits.md"

CASES = [case for _, case in all_cases()]


def _first_ones():
    """The first case of each function: what is tested every time."""
    seen = set()
    for case in CASES:
        yield case.function not in seen
        seen.add(case.function)


FIRST = list(_first_ones())
ROWS = [
    pytest.param(case, id=str(case), marks=() if first else pytest.mark.slow)
    for case, first in zip(CASES, FIRST, strict=True)
]


def refused_functions():
    """The functions of the table in limits.md by name, and whether it is real arrays only."""
    section = LIMITS.read_text(encoding="utf-8").split("## Refused")[1].split("\n## ")[0]
    rows = section.split("| programs |")[0].splitlines()
    cells = [row.split("|")[1:3] for row in rows if row.startswith("| `")]
    return {
        name.strip().strip("`"): why.strip().startswith("of real matrices")
        for names, why in cells
        for name in names.split(",")
    }


REFUSED = refused_functions()


def is_refused(case):
    of_reals = REFUSED.get(function_name(case.function))
    return of_reals is not None and not (of_reals and any(map(np.iscomplexobj, case.args)))


@pytest.mark.parametrize("case", ROWS)
def test_a_rule_on_the_tape_agrees_with_the_rule(case):
    if is_refused(case):
        with pytest.raises((UntraceableError, MissingRuleError)):
            OnTape(case)
        return
    held = OnTape(case)
    for pattern in held.trial.patterns():
        for n in held.trial.widths:
            held.check(pattern, n)


def test_at_most_two_of_a_hundred_cases_are_refused():
    refused = sum(map(is_refused, CASES))
    assert refused <= 0.02 * len(CASES), f"{refused} of {len(CASES)}"


def test_what_is_refused_has_cases():
    names = {function_name(case.function) for case in CASES}
    assert names >= set(REFUSED)


def written_out():
    """How many cases' rules are written out operation by operation, by function."""
    found, whole = Counter(), Counter()
    for case, first in zip(CASES, FIRST, strict=True):
        if first and not is_refused(case):
            held = OnTape(case, widths=(2,))
            is_whole = held.check(held.trial.patterns()[-1], 2)
            (whole if is_whole else found)[function_name(case.function)] += 1
    return found, whole


def test_rules_of_everyday_are_written_out():
    found, whole = written_out()
    everyday = """sum mean var std prod max min ptp reshape ravel transpose moveaxis concatenate
    stack hstack vstack where maximum minimum clip repeat tile roll flip diag tril triu trace dot
    matmul einsum tensordot outer kron vdot inner cumsum sort interp convolve diagonal
    take_along_axis linalg.norm linalg.solve linalg.inv linalg.eigvalsh fft.fft fft.rfft""".split()
    assert {f"numpy.{name}" for name in everyday} - set(found) == set()
    assert len(found) > 2 * len(whole)


# -- that the comparison finds what is wrong


def test_a_wrong_tangent_is_found(monkeypatch):
    rule = find_rule(np.sort)
    body = rule.body

    def wrong(primals, tangents, **options):
        y, y_dot = body(primals, tangents, **options)
        held = hasattr(primals[0], "__fwdad_symbolic__")
        return y, (2.0 * y_dot if held else y_dot)

    monkeypatch.setattr(rule, "body", wrong)
    held = OnTape(Case(np.sort, np.array([2.0, 1.0, 3.0])))
    with pytest.raises(AssertionError, match="max error"):
        held.check(held.trial.patterns()[-1], 2)


def test_a_rule_that_cannot_be_written_out_still_counts_as_one_operation():
    held = OnTape(Case(scipy.fft.dct, np.array([2.0, 1.0, 0.5, 3.0])))
    assert held.check(held.trial.patterns()[-1], 2)


# -- what must not be silent


@pytest.mark.every(4)
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_computed_length_may_turn_out_to_be_one(k, n):
    def f(x, c, k):
        return np.sum((x[:k] + c) * np.sin(x[:k] * c) + np.where(c > 0, x[:k], c))

    # one element, or all of them: two of three do not broadcast
    x, c = np.array([2.0, 3.0, 5.0])[: max(k, 2)], np.array([1.0, -4.0, 0.5])[: max(k, 2)]
    x_dot = np.random.default_rng(k).standard_normal((n, len(x)))
    compiled = fwdad.jit(f)
    fwdad.jvp(compiled, x, x_dot[0], args=(c, len(x)))  # traced with another length
    for lane in x_dot:
        got = fwdad.jvp(compiled, x, lane, args=(c, k))
        want = fwdad.jvp(f, x, lane, args=(c, k))
        np.testing.assert_allclose(got[1], want[1], rtol=1e-13)


def test_a_store_through_a_view_reaches_what_it_looks_into():
    def through_view(x):
        a = np.zeros((2, 2))
        v = a.reshape(-1)
        v[0] = x[0] * x[1]
        return a

    def into_base(x):
        a = x * 1.0
        v = a.reshape(1, -1)
        a[0] = x[0] * x[1]
        return v

    def through_transpose(x):
        a = np.zeros((2, 3))
        t = a.T
        t[2, 0] = x[0] ** 2
        a[1] = t[:, 0]
        return a

    x = np.array([2.0, 3.0])
    for f in (through_view, into_base, through_transpose):
        np.testing.assert_array_equal(
            fwdad.jacobian(fwdad.jit(f), x), fwdad.jacobian(f, x), err_msg=f.__name__
        )


def test_a_view_that_cannot_be_mirrored_is_refused_if_it_is_written_later():
    def f(x):
        a = np.zeros((2, 2))
        a[0] = x
        d = view(a)
        a[1, 1] = x[0]
        return d

    x = np.array([2.0, 3.0])
    view = np.ascontiguousarray
    with pytest.raises(UntraceableError, match="view"):
        fwdad.jacobian(fwdad.jit(f), x)
    view = np.diag
    np.testing.assert_array_equal(fwdad.jacobian(fwdad.jit(f), x), [[1.0, 0.0], [1.0, 0.0]])


def test_a_keyword_that_carries_a_derivative_is_not_lost():
    def f(x):
        return np.var(x, mean=x[0])

    x = np.array([1.0, 4.0, 6.0])
    want = fwdad.jacobian(f, x)
    np.testing.assert_allclose(fwdad.jacobian(fwdad.jit(f), x), want, rtol=1e-13)


def test_an_undefined_tangent_raises_only_where_it_is_used():
    def values(x):
        w, _ = np.linalg.eigh(np.eye(3) * x[0])
        return w

    def vectors(x):
        _, v = np.linalg.eigh(np.eye(3) * x[0])
        return v

    x = np.array([2.0])
    np.testing.assert_allclose(fwdad.jacobian(fwdad.jit(values), x), np.ones((3, 1)), rtol=1e-14)
    with pytest.raises(fwdad.errors.UndefinedDerivativeError):
        fwdad.jacobian(fwdad.jit(vectors), x)


def test_second_derivatives_go_through_rules_that_run_whole():
    def f(x):
        a = np.outer(x, x) + np.diag(x + 2.0)
        return np.linalg.slogdet(a)[1] + np.linalg.det(a)

    x = np.array([0.3, 1.2, 0.7])
    second = fwdad.jit(lambda x: fwdad.hessian(f, x))
    np.testing.assert_allclose(second(x), fwdad.hessian(f, x), rtol=1e-12)


def test_what_an_attempt_has_written_is_taken_back():
    tape = fwdad.trace(lambda x: np.linalg.det(x * 2.0), np.eye(2))
    program, constants = push_forward(tape.program, 2, [True])
    defined = {v for op in program.walk() for v in op.outputs} | set(program.block.params)
    used = {v for op in program.walk() for v in values_in(op.operands())}
    assert used <= defined
    assert constants == []


@pytest.mark.parametrize(
    ("f", "places"),
    [
        (lambda x, places: x[np.where(x > 1.5)[0]], np.array([0])),
        (lambda x, places: 2 * np.repeat(x, places), np.array([1, 0, 2])),
        (lambda x, places: np.bincount(places, weights=x), np.array([1, 0, 5])),
        (lambda x, places: np.delete(x, places) * x[0], np.array([1, 0])),
    ],
    ids=["where", "repeat", "bincount", "delete"],
)
def test_lengths_that_depend_on_values_are_never_taken_for_known(f, places):
    x = np.array([1.0, 2.0, 3.0])
    want = fwdad.jacobian(f, x, args=(places,))
    np.testing.assert_allclose(fwdad.jacobian(fwdad.jit(f), x, args=(places,)), want, rtol=1e-14)


def test_what_runs_whole_leaves_no_view_of_its_arguments():
    def f(x):
        return np.sum(np.lib.stride_tricks.sliding_window_view(x, 3) ** 2, axis=1)

    x = np.array([1.0, 2.0, 4.0, 3.0, 5.0])
    tangent = fwdad.jit(lambda x: fwdad.jvp(f, x, x)[1])
    for _ in range(3):  # the second found its argument stale
        assert_allclose(tangent(x), 2 * f(x), rtol=1e-14)
