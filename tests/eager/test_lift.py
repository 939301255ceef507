"""Lifted code: the user's names, lines, cells and defaults; nothing in the user's namespaces."""

# ruff: noqa: PLC3002, TRY301 - programs as users write them

import math
import sys
import traceback

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad
from fwdad.core.lifted_code import LIFTED
from fwdad.eager.lifting.lift import _CACHE, lift
from tests.differences import central_differences

SCALE = 2.0


def sample(x, y=3.0, *rest, k=4.0, **more):
    """A docstring."""
    total = x * y + k
    for value in rest:
        total += value
    return total + sum(more.values()) * SCALE


def test_twin_is_the_function():
    twin = lift(sample)
    assert twin is not sample
    assert (twin.__name__, twin.__qualname__, twin.__module__) == ("sample", "sample", __name__)
    assert twin.__defaults__ is sample.__defaults__
    assert twin.__kwdefaults__ is sample.__kwdefaults__
    assert twin.__globals__ is sample.__globals__
    assert twin.__code__.co_filename == sample.__code__.co_filename
    assert twin.__code__.co_firstlineno == sample.__code__.co_firstlineno
    assert twin.__code__.co_varnames[:5] == sample.__code__.co_varnames[:5]
    assert id(twin.__code__) in LIFTED
    assert twin(1.0, 2.0, 5.0, k=7.0, z=1.0) == sample(1.0, 2.0, 5.0, k=7.0, z=1.0)


def test_sourceless_function_has_no_twin():
    assert lift(eval("lambda x: x")) is None


def test_nothing_enters_the_users_globals():
    before = set(globals())
    fwdad.derivative(sample, 1.0)
    assert set(globals()) == before


def test_globals_are_read_when_called(monkeypatch):
    f = lambda x: x * SCALE  # noqa: E731
    assert fwdad.derivative(f, 1.0) == 2.0
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert fwdad.derivative(f, 1.0) == 5.0


def test_callees_are_looked_up_when_called(monkeypatch):
    def outer(x):
        return helper(x)

    assert fwdad.derivative(outer, 1.0) == 3.0
    monkeypatch.setitem(globals(), "helper", lambda x: 4 * x)
    assert fwdad.derivative(outer, 1.0) == 4.0


def helper(x):
    return 3 * x


def test_defaults_that_change():
    def f(x, k=2.0):
        return x * k

    assert fwdad.derivative(f, 1.0) == 2.0
    f.__defaults__ = (6.0,)
    assert fwdad.derivative(f, 1.0) == 6.0


def test_defaults_by_name_that_change():
    def f(x, *, k=2.0):
        return x * k

    assert fwdad.derivative(f, 1.0) == 2.0
    f.__kwdefaults__ = {"k": 6.0}
    assert fwdad.derivative(f, 1.0) == 6.0
    f.__kwdefaults__["k"] = 7.0
    assert fwdad.derivative(f, 1.0) == 7.0


def test_defaults_are_not_evaluated_again():
    made = []

    def make():
        made.append(1)
        return 2.0

    def f(x, k=make()):  # noqa: B008
        return x * k

    assert fwdad.derivative(f, 1.0) == 2.0
    assert made == [1]


def test_closures_over_one_code_are_distinguished():
    def times(k):
        def f(x):
            return k * x

        return f

    functions = [times(k) for k in (2.0, 3.0, 5.0)]
    assert [fwdad.derivative(f, 1.0) for f in functions] == [2.0, 3.0, 5.0]
    held = len(_CACHE)
    assert [fwdad.derivative(times(k), 1.0) for k in (7.0, 11.0)] == [7.0, 11.0]
    assert len(_CACHE) == held


def test_tracebacks_show_the_users_lines():
    def f(x):
        y = x * 2
        return helper_that_fails(
            y,
        )

    with pytest.raises(ZeroDivisionError) as caught:
        fwdad.jacobian(f, np.ones(2))
    mine = [e for e in traceback.extract_tb(caught.value.__traceback__) if e.filename == __file__]
    assert [(e.name, e.line) for e in mine[1:]] == [
        ("f", "return helper_that_fails("),
        ("helper_that_fails", "return y / zero()"),
        ("zero", "return 1 // 0"),
    ]


def helper_that_fails(y):
    return y / zero()


def zero():
    return 1 // 0


def test_unbound_names_stay_errors():
    def f(x):
        if x[0] > 100:
            y = x
        return y

    with pytest.raises(UnboundLocalError, match="'y'"):
        fwdad.jacobian(f, np.ones(2))
    with pytest.raises(NameError, match="undefined_name"):
        fwdad.jacobian(lambda x: undefined_name * x, np.ones(2))  # noqa: F821


def test_statements_keep_their_meaning():
    def f(x):
        made = []
        for i, v in enumerate(x):
            if i == 1:
                continue
            made.append(v)
        made.append(x[1] * 10)
        while made:
            last = made.pop()
            if last > 5:
                break
        try:
            if last < 100:
                raise LookupError("small")
        except LookupError as error:
            made.append(len(str(error)))
        finally:
            made.append(last)
        k: float = made[-1]
        made[0:1] = [k, k * x[0]]
        del made[0]
        first = second = k
        first += 1.0
        with_lambda = (lambda a, *b, c=2.0: a * c + sum(b))(first, *made)
        chained = 1.0 if 0 < x[0] < 1 <= x[1] else 2.0
        return np.array([with_lambda, second, chained * k, -k, +k, not k], dtype=float)

    x = np.array([0.5, 1.5, 0.25])
    expected = central_differences(f, x)
    value, J = fwdad.value_and_jacobian(f, x)
    assert_array_equal(value, f(x))
    np.testing.assert_allclose(J, expected, atol=1e-8)


def test_super_and_class_cells():
    class A:
        def g(self, x):
            return math.sin(x)

    class B(A):
        def g(self, x):
            return super().g(x) * __class__.k + super().g(x)

        k = 2.0

    assert fwdad.derivative(B().g, 0.3) == 3 * math.cos(0.3)


def test_global_and_nonlocal_variables(monkeypatch):
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    total = 1.0

    def f(x):
        global SCALE
        nonlocal total
        SCALE = SCALE * x
        total += SCALE
        return total * SCALE

    assert fwdad.derivative(f, 3.0) == 2.0 + 8.0 * 3.0
    assert (SCALE, total) == (6.0, 7.0)
    assert type(SCALE) is type(total) is float


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters came with Python 3.12")
def test_generic_functions():
    namespace = {}
    exec("def f[T](x: T) -> T:\n    return x * 2\n", namespace)
    assert fwdad.derivative(namespace["f"], 1.0) == 2.0


def test_locals_are_the_users_own():
    def f(x, *, scale=2.0):
        y = x * scale * MORE

        class Kept:
            at = 1.0
            locals()["late"] = 3.0

        names = sorted(locals()), sorted(vars()), sorted(dir())
        assert names == (["Kept", "MORE", "scale", "x", "y"],) * 3
        return locals()["y"] * Kept.late * len(locals())

    MORE = 1.0
    assert fwdad.derivative(f, 1.0) == 2.0 * 3.0 * 6
