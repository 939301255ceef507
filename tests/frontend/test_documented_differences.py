"""What a tape runs otherwise than plain Python: what the page says, and no more."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad
from fwdad.api.jit import cache_info
from fwdad.frontend import trace as tracing
from fwdad.frontend.trace import trace
from tests.frontend import documented_differences as programs
from tests.frontend.agreement import bits
from tests.frontend.documented_differences import DIFFERENCES, V

PAGE = Path(tracing.__file__).with_name("limits.md").read_text(encoding="utf-8")
SECTION = PAGE.split("## What differs from plain Python\n")[1]
ITEMS = set(re.findall(r"^- \*\*(.*?)\*\*", SECTION, re.MULTILINE))


@pytest.fixture(params=["numpy", "numba"])
def backend(request):
    if request.param == "numba":
        pytest.importorskip("numba")
    return request.param


def test_each_item_has_programs():
    assert set(DIFFERENCES) == ITEMS
    assert SECTION.count("\n- ") == len(ITEMS)


def test_each_program_has_a_test():
    source = Path(__file__).read_text(encoding="utf-8")
    for f in [f for entered in DIFFERENCES.values() for f in entered]:
        assert f"programs.{f.__name__}" in source


def ways(f, backend):
    """A gradient by a tape, and under ``jit``."""
    return fwdad.grad(f), fwdad.jit(fwdad.grad(f), backend=backend)


# -- types


@pytest.mark.parametrize(
    ("f", "args", "own", "traced"),
    [
        (programs.widened_before_a_loop, (2.0, 0), 0, 0.0),
        (programs.widened_before_a_loop, (2.0, 1), 2.0, 2.0),
        (programs.widened_answer, (2.0,), 1, 1.0),
        (programs.widened_answer, (-2.0,), -2.0, -2.0),
        (programs.widened_to_a_number_of_numpy, (2.0, 0), 0.5, np.float64(0.5)),
        (programs.widened_to_a_number_of_numpy, (2.0, 1), np.float64(1.0), np.float64(1.0)),
    ],
)
def test_types(f, args, own, traced, backend):
    assert bits(f(*args)) == bits(own)
    assert bits(fwdad.jit(f, backend=backend)(*args)) == bits(traced)
    slope = fwdad.derivative(f, args[0], args=args[1:])
    for gradient in ways(f, backend):
        assert gradient(*args) == slope


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_number_of_numpy_does_not_raise(backend):
    f = programs.widened_to_a_number_of_numpy
    with pytest.raises(ZeroDivisionError):
        f(0.0, 0)
    assert bits(fwdad.jit(f, backend=backend)(0.0, 0)) == bits(np.float64(np.inf))
    for gradient in ways(f, backend):
        assert gradient(0.0, 0) == -np.inf


# -- output


def test_output(backend, capsys):
    f = programs.prints_and_warns
    compiled = fwdad.jit(f, backend=backend)
    recorded, differentiated = ways(f, backend)
    for g, value in ((f, 6.0), (compiled, 6.0), (recorded, 2.0)):
        for _ in range(2):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                assert g(3.0) == value
            assert [str(w.message) for w in caught] == ["about to double"]
            assert capsys.readouterr().out == "x is 3.0\n"
    with pytest.warns(UserWarning, match="about to double"):
        assert differentiated(3.0) == 2.0
    assert capsys.readouterr().out == "x is 3.0\n"


@pytest.mark.parametrize(
    "f", [programs.errstate_around_a_logarithm, programs.filter_around_a_logarithm]
)
def test_warnings_of_operations(f, backend):
    a = np.array([0.0, 1.0])
    for g, says in ((f, False), (fwdad.jit(f, backend=backend), backend == "numpy")):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert g(a) == -np.inf
        assert [str(w.message) for w in caught] == ["divide by zero encountered in log"] * says
    for gradient in ways(f, backend):
        assert_array_equal(gradient(a), [np.inf, 1.0])


# -- exceptions


def raised(g, *args, error=IndexError):
    with pytest.raises(error) as caught:
        g(*args)
    return str(caught.value)


def test_after_an_exception(backend):
    f = programs.stores_and_appends_before_it_raises
    for g, appended in ((f, [0.5]), (fwdad.jit(f, backend=backend), [])):
        a, items = V.copy(), []
        raised(g, a, items, 9)
        assert_array_equal(a, [7.0, *V[1:]])
        assert items == appended
        a = V.copy()
        assert g(a, items, 1) == 8.75
        assert items == [*appended, 0.5]
    a, items = V.copy(), []
    raised(fwdad.grad(f), a, items, 9)
    assert_array_equal(a, V)
    assert items == []


@pytest.mark.parametrize("f", [programs.stores_finally, programs.stores_at_the_exit])
def test_what_is_stored_finally(f, backend):
    for g, stored in ((f, 7.0), (fwdad.jit(f, backend=backend), V[0])):
        a = V.copy()
        raised(g, a, 9)
        assert_array_equal(a, [stored, *V[1:]])
        a = V.copy()
        assert g(a, 1) == 2.5
        assert_array_equal(a, [7.0, *V[1:]])
    for gradient in ways(f, backend):
        raised(gradient, V, 9)
        assert_array_equal(gradient(V, 1), [0.0, 2.0, 0.0])


# -- what nobody needs


@pytest.mark.parametrize(
    "f", [programs.stores_what_is_not_answered, programs.names_what_is_not_read]
)
def test_not_run(f, backend):
    raised(f, V, 9)
    assert fwdad.jit(f, backend=backend)(V, 9) == np.sum(V**2)
    for gradient in ways(f, backend):
        assert_array_equal(gradient(V, 9), 2 * V)


def test_value_of_a_derivative(backend):
    f, a = programs.only_the_value_needs_it, V.copy()
    for g in (f, fwdad.jit(f, backend=backend), fwdad.value_and_grad(f)):
        raised(g, a, 9)
    for gradient in ways(f, backend):
        assert_array_equal(gradient(a, 9), 2 * a)


@pytest.mark.every(2, of="numba", first=1)
@pytest.mark.parametrize(
    ("k", "error"), [(1, ZeroDivisionError), (2, ValueError), (3, np.linalg.LinAlgError)]
)
def test_what_raises_for_its_numbers_is_kept(k, error, backend):
    f = programs.raises_for_its_numbers
    for g in (f, fwdad.jit(f, backend=backend), *ways(f, backend)):
        raised(g, V, k, error=error)


# -- messages


def test_messages(backend):
    f = programs.says_numbers
    compiled = fwdad.jit(f, backend=backend)
    for x, own, traced in [
        (-1.0, "y is -1.000, not at least 0.5", "y is …, not at least 0.5"),
        (0.5, "y of 3, 0.5: 0.5 is low", "y of 3, …: … is low"),
        (1.5, "y is 1.500, 50 % of 2", "y is …, 50 % of 2"),
    ]:
        assert raised(f, x, "y", error=ValueError) == own
        with pytest.raises(ValueError) as caught:  # noqa: PT011  (the text is compared)
            compiled(x, "y")
        assert bits(caught.value.args) == bits((traced,))
        assert raised(fwdad.grad(f), x, "y", error=ValueError) in (own, traced)
    assert compiled(2.5, "y") == 5.0


def test_messages_of_what_writes(backend):
    f = programs.stores_before_it_raises
    own = "index 9 is out of bounds for axis 0 with size 3"
    assert raised(f, V.copy(), 9) == own
    traced = own if backend == "numpy" else "index is out of bounds"
    assert raised(fwdad.jit(f, backend=backend), V.copy(), 9) == traced
    for gradient in ways(f, backend):
        assert raised(gradient, V, 9) == own


# -- what is assumed of arguments


def test_shared_memory(backend):
    f = programs.writes_one_of_two
    compiled = fwdad.jit(f, backend=backend)
    for g in (f, compiled):
        a = V.copy()
        assert_array_equal(g(a, a), [10.0, 2.5, 4.0])
        assert_array_equal(a, [5.0, 1.25, 2.0])
        assert_array_equal(g(V.copy(), V), 2 * V)
    assert cache_info(compiled).traces == 1
    tape, a = trace(f, V, V.copy()), V.copy()
    assert "share memory" in raised(tape, a, a, error=TypeError)
    assert_array_equal(a, V)
    for gradient in ways(lambda a, b: np.sum(f(a, b)), backend):
        raised(gradient, a, a, error=fwdad.errors.AliasedArgumentError)


def test_known_values(backend):
    f = programs.along_an_axis
    a = np.arange(6.0).reshape(2, 3)
    compiled = fwdad.jit(f, backend=backend)
    gradient, differentiated = ways(f, backend)
    for traces, axis in ((1, 0), (2, 1), (2, 0)):
        assert compiled(a, axis) == f(a, axis)
        assert cache_info(compiled).traces == traces
        expected = np.zeros_like(a)
        expected[(slice(None), 0) if axis == 0 else 0] = 1.0
        assert_array_equal(gradient(a, axis), 2 * a * expected)
        assert_array_equal(differentiated(a, axis), 2 * a * expected)
    raised(trace(f, a, 0), a, 1, error=TypeError)


# -- lists that grow


def test_lists_that_grow(backend):
    rows = fwdad.jit(programs.positive_rows, backend=backend)
    assert_array_equal(rows(V), programs.positive_rows(V))
    x = np.array([0.0, 1.25, 2.0])
    assert programs.positive_rows(x).shape == (0,)
    assert rows(x).shape == (0, 3)
    gradient, differentiated = ways(lambda x: np.sum(programs.positive_rows(x)), backend)
    for found in (gradient, differentiated):
        assert_array_equal(found(x), np.zeros(3))
        assert_array_equal(found(V), np.full(3, 2 * np.sum(V)))
    f = programs.places_and_the_argument
    compiled = fwdad.jit(f, backend=backend)
    (places, held), (own, own_held) = compiled(V), f(V)
    assert_array_equal(places, own)
    assert_array_equal(held, own_held)
    assert own_held[0] is V
    assert not any(np.shares_memory(a, V) for a in held)
    assert f(-V)[0].dtype == float
    assert compiled(-V)[0].dtype == int
    assert compiled(-V)[0].shape == (0,)


# -- NaN among what is sorted


def test_nan_among_what_is_sorted(backend):
    f = programs.middle_of_three
    compiled = fwdad.jit(f, backend=backend)
    for x, y, z in ((2.0, np.nan, 1.0), (np.nan, 2.0, 1.0), (2.0, 1.0, np.nan)):
        assert bits(compiled(x, y, z)) == bits(float(np.sort([x, y, z])[1]))
        for gradient in ways(f, backend):
            assert gradient(x, y, z) == (1.0 if x == 2.0 else 0.0)
    assert np.isnan(f(2.0, np.nan, 1.0))
    assert compiled(3.0, 2.0, 1.0) == f(3.0, 2.0, 1.0) == 2.0


def test_what_a_cache_keeps(backend, monkeypatch):
    f, at = programs.cached_from_a_table, np.array([0.5])
    programs.from_table.cache_clear()
    compiled = fwdad.jit(f, backend=backend)
    assert f(at) == compiled(at) == 3.0
    monkeypatch.setattr(programs, "TABLE", np.array([4.0]))
    assert f(at) == 3.0
    assert compiled(at) == 6.0
    programs.from_table.cache_clear()


def test_one_array_in_two_places(backend):
    """d(a·a) = 2a as one array; a and a as two."""
    f, a = programs.product_of_parts, np.array([1.0, 2.0, 3.0])
    plain, compiled = ways(f, backend)
    assert_array_equal(plain([a, a]), [2 * a, 2 * a])
    assert_array_equal(fwdad.jacobian(f, [a, a], mode="forward"), [2 * a, 2 * a])
    assert_array_equal(compiled([a, a]), [2 * a, 2 * a])
    assert_array_equal(plain([a, a.copy()]), compiled([a, a.copy()]))
