"""The page of limits: what a tape refuses is listed, and is little; each item has a program."""

import copy
import inspect
import re

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.api.jit import cache_info
from fwdad.errors import FwdadError, MissingRuleError, UndefinedDerivativeError, UntraceableError
from fwdad.ir.ops import Apply
from fwdad.ir.primitives.opaque_call import Whole
from tests.cases.aliasing import ALIASING
from tests.cases.mutation import MUTATIONS
from tests.cases.numbered import NUMBERED
from tests.cases.test_listing import rows
from tests.cases.test_reverse import ALL, RECORDED
from tests.differences import central_differences
from tests.ir import limit_programs as programs
from tests.ir.limit_programs import X
from tests.transforms.forward.rule_cases import OnTape
from tests.transforms.forward.test_rules import CASES, LIMITS, is_refused

SECTION = LIMITS.read_text(encoding="utf-8").split("## Refused")[1].split("\n## ")[0]
TABLE = SECTION.split("| programs | why |")[1]
NAMES = [row.split(" | ")[0] for row in TABLE.splitlines()]
LISTED = {name for names in NAMES for name in re.findall(r"`(\w+)`", names)}
PROGRAMS = [program for program in ALL if str(program) in LISTED]
RULES = [case for case in CASES if is_refused(case)]


def test_few_are_refused():
    """The others: tests/transforms/forward/test_rules.py, tests/cases/test_reverse.py."""
    cases = len(CASES) + len(ALL) + len(NUMBERED)
    assert cases > 3800
    assert len(RULES) + len(PROGRAMS) <= 0.02 * cases


def test_programs_that_are_refused_are_listed():
    assert {str(program) for program in PROGRAMS} == LISTED
    # views that are written are run backwards
    assert LISTED == RECORDED | {"strided_views"}


def test_none_is_a_form_of_the_cases_of_mutation():
    known = {str(program) for program in MUTATIONS + ALIASING}
    forms = {name for _, names in rows("Mutation and aliasing") for name in names.split()}
    assert forms <= known - LISTED


@pytest.mark.filterwarnings("ignore::fwdad.TraceWarning")
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_programs_are_refused(program):
    f = fwdad.jit(fwdad.jacfwd(program.function), backend="numpy")
    with pytest.raises((UntraceableError, MissingRuleError)):
        f(copy.deepcopy(program.x))


@pytest.mark.parametrize("case", RULES, ids=str)
def test_rules_are_refused(case):
    with pytest.raises((UntraceableError, MissingRuleError)):
        OnTape(case)


# -- the other sections


def section(title):
    return LIMITS.read_text(encoding="utf-8").split(f"## {title}\n")[1].split("\n## ")[0]


def table(title):
    """The cells of each row."""
    lines = section(title).splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return rows[1:]


def bullets(title):
    return [" ".join(item.split()) for item in ("\n" + section(title)).split("\n- ")[1:]]


def test_all_sections_are_read():
    titles = re.findall(r"^## (.*)$", LIMITS.read_text(encoding="utf-8"), re.MULTILINE)
    own = ["Run whole", "What differs", "What is not run backwards", "What is assumed"]
    assert titles == ["Refused", *own]


def run_whole(call, f):
    """The functions that the tape of a derivative runs whole, and the derivative."""
    compiled = fwdad.jit(call(f), backend="numpy")
    answer = compiled(X)
    ops = compiled.last.tape.program.walk()
    return [op for op in ops if isinstance(op, Apply) and isinstance(op.function, Whole)], answer


def test_what_is_run_whole_has_programs():
    listed = {name for row in table("Run whole") for name in re.findall(r"`([^`]+)`", row[1])}
    # in the text of other items
    listed -= {"add"}
    assert listed == set(programs.RUN_WHOLE)


def _along(f):
    return lambda x: fwdad.jvp(f, x, x)[1]


def _gradient(f):
    return fwdad.grad(lambda x: np.sum(f(x) ** 2))


@pytest.mark.parametrize("name", programs.RUN_WHOLE)
def test_run_whole(name):
    f = programs.RUN_WHOLE[name]
    for call in (_along, _gradient):
        whole, answer = run_whole(call, f)
        assert whole
        assert_allclose(answer, call(f)(X), rtol=1e-13, atol=1e-14)
    if name in programs.LENGTHS_AS_NUMBERS:  # a Jacobian knows them
        assert not run_whole(fwdad.jacfwd, f)[0]


@pytest.mark.parametrize("name", programs.WRITTEN_OUT)
def test_not_run_whole(name):
    for call in (_along, _gradient):
        whole, _ = run_whole(call, programs.WRITTEN_OUT[name])
        assert not whole


def test_what_is_not_run_backwards_has_programs():
    items = [row[0] for row in table("What is not run backwards")]
    for item in items:
        assert any(part in item for part, _, _ in programs.BACKWARDS), item
    for part, _, _ in programs.BACKWARDS:
        assert sum(part in item for item in items) == 1, part


@pytest.mark.parametrize(
    ("says", "f"), [row[1:] for row in programs.BACKWARDS], ids=lambda x: getattr(x, "__name__", "")
)
def test_not_run_backwards(says, f, caplog):
    lines, first = inspect.getsourcelines(f)
    here = next(first + k for k, line in enumerate(lines) if line.rstrip().endswith("# here"))
    with pytest.raises(FwdadError, match=says) as caught:
        fwdad.jit(fwdad.grad(f), backend="numpy")(X)
    said = [
        f'"{programs.__file__}", line {here}' in n for n in getattr(caught.value, "__notes__", [])
    ]
    assert caught.value.lineno == here or any(said), str(caught.value)
    if f is programs.rule_for_lanes:
        assert_allclose(fwdad.jacobian(f, X, mode="forward"), 4 * X**3, rtol=1e-14)
        return
    expected = central_differences(f, X)
    assert_allclose(fwdad.grad(f)(X), expected, rtol=1e-6, atol=1e-6)  # recorded as it runs
    assert not caplog.records  # a limit is no mistake


DIFFERS = {}
ASSUMED = {}


def shows(table, item):
    """Enter a test of the item that starts so."""

    def enter(test):
        table[item] = test
        return test

    return enter


@pytest.mark.parametrize(
    ("title", "tests"), [("What differs", DIFFERS), ("What is assumed", ASSUMED)]
)
def test_each_item_has_a_test(title, tests):
    items = bullets(title)
    assert len(items) == len(tests)
    for item in items:
        assert any(item.startswith(start) for start in tests), item


@shows(DIFFERS, "Compiled code lays the arrays that it makes and returns row by row")
def test_order_of_what_is_returned():
    pytest.importorskip("numba")
    a = np.arange(6.0).reshape(2, 3)
    b, plain = fwdad.jit(programs.columns, backend="numba")(a), programs.columns(a)
    assert_array_equal(b, plain)
    assert (plain.flags.f_contiguous, b.flags.c_contiguous) == (True, True)
    answers = fwdad.jit(programs.order_of_columns, backend="numba")(a)
    for seen, own in zip(answers, programs.order_of_columns(a), strict=True):
        assert_array_equal(seen, own)


@shows(DIFFERS, "`np.pad` of an array that lies neither row by row nor column by column")
def test_order_of_what_is_padded():
    rows = np.arange(24.0).reshape(4, 6)
    columns = np.asfortranarray(rows)
    cases = [(programs.padded, a, True) for a in (rows, columns)]
    cases += [(programs.padded, columns[::2], False), (programs.padded_by_edges, rows, True)]
    cases += [(programs.padded_by_edges, columns, False)]
    for f, a, same in cases:
        seen, own = fwdad.jit(f, backend="numpy")(a), f(a)
        assert_array_equal(seen, own)
        assert (seen.strides == own.strides) == same


@shows(DIFFERS, "The residuals of `scipy.linalg.lstsq`")
def test_residuals():
    full, deficient = np.cos(np.arange(12.0) ** 2).reshape(6, 2), np.outer(X, [1.0, 2.0])
    for f in (programs.solution, programs.residuals):
        for transform in (fwdad.jacfwd, fwdad.grad):
            derivative = fwdad.jit(transform(f), backend="numpy")
            assert_allclose(derivative(full, X), transform(f)(full, X), rtol=1e-12, atol=1e-14)
            wanted = transform(f)(deficient, X)
            is_array = type(scipy.linalg.lstsq(full, X)[1]) is np.ndarray  # SciPy 1.18
            if f is programs.solution or is_array:
                assert_allclose(derivative(deficient, X), wanted, rtol=1e-12, atol=1e-14)
            else:
                with pytest.raises(UntraceableError, match="the rank depends on values"):
                    derivative(deficient, X)


@shows(ASSUMED, "A length of two or more is unknown")
def test_computed_lengths():
    f = programs.selected
    compiled = fwdad.jit(f, backend="numpy")
    x = np.array([0.5, 1.0, 1.5, 2.0])
    for t in (0.7, 1.7, 0.9):  # three elements, one, three
        assert_array_equal(compiled(x, t), f(x, t))
    for g in (f, compiled):
        with pytest.raises(ValueError, match="broadcast"):
            g(x, 1.2)
    assert_array_equal(compiled(x[:3], 0.1), f(x[:3], 0.1))
    assert cache_info(compiled).traces == 1


@shows(ASSUMED, "Where a function accepts no samples of free lengths")
def test_lengths_of_the_example():
    f = programs.of_known_lengths
    compiled = fwdad.jit(f, backend="numpy")
    for n in (2, 3, 2):
        a, b = np.sin(np.arange(4.0 * n * n) ** 2).reshape(2 * n, n, 2), np.arange(2.0 * n)
        assert_allclose(compiled(a, b), f(a, b), rtol=1e-13)
    assert cache_info(compiled) == (2, 1)


@shows(ASSUMED, "A view of an array that carries derivatives and is written later")
def test_views():
    item = next(item for item in bullets("What is assumed") if item.startswith("A view"))
    assert set(re.findall("`[^`]+`", item)) == {*programs.FOLLOWED, *programs.NOT_FOLLOWED}
    for name, view in {**programs.FOLLOWED, **programs.NOT_FOLLOWED}.items():
        f = programs.written_behind(view)
        for call in (fwdad.jacfwd, fwdad.grad):
            compiled = fwdad.jit(call(f), backend="numpy")
            if name in programs.FOLLOWED or (name, call) == ("`sliding_window_view`", fwdad.grad):
                assert_allclose(compiled(X), fwdad.jacfwd(f)(X), rtol=1e-13)
            else:
                with pytest.raises(UntraceableError, match="a view of an array"):
                    compiled(X)


@shows(ASSUMED, "In forward mode on a tape the lanes of an array that is written are C-contiguous")
def test_lanes_are_c_contiguous():
    f = programs.lanes_row_by_row
    assert_allclose(fwdad.jit(fwdad.jacfwd(f), backend="numpy")(X), fwdad.jacfwd(f)(X), rtol=1e-13)
    with pytest.raises(UntraceableError, match="C-contiguous"):
        fwdad.jit(fwdad.jacfwd(programs.view_the_lanes_do_not_have), backend="numpy")(X)


@shows(ASSUMED, "The tangent that a rule run whole calls undefined")
def test_undefined_on_the_other_way():
    f = programs.undefined_on_the_other_way
    assert_array_equal(fwdad.jacfwd(f)(X, -1.0), [2.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(UndefinedDerivativeError, match="repeated eigenvalue"):
        fwdad.jit(fwdad.jacfwd(f), backend="numpy")(X, -1.0)


@shows(ASSUMED, "Small arrays (at most 16 elements, lengths known) become numbers")
def test_small_arrays():
    pytest.importorskip("numba")
    a = np.array([1.0, 2.0, 3.0])
    assert programs.doubled(a, 0) is a
    compiled = fwdad.jit(programs.doubled, backend="numba")
    for n in (0, 2):
        answer = compiled(a, n)
        assert_array_equal(answer, programs.doubled(a, n))
        assert not np.may_share_memory(answer, a)


@shows(ASSUMED, "A loop whose state is an array of at most 16 elements gets a tape")
def test_tapes_of_their_own():
    """How many at most: tests/codegen/test_small_arrays.py."""
    pytest.importorskip("numba")
    compiled = fwdad.jit(programs.doubled, backend="numba")
    for n in (100, 200, 3, 4, 3):
        assert compiled.find((np.ones(n), 1), {})
    assert cache_info(compiled) == (3, 2)
