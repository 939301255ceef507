"""Programs with lines that Numba cannot compile: these run under NumPy, called by the others."""

import inspect
import logging
import re

import numpy as np
import pytest
import scipy.fft
from numpy.testing import assert_allclose

import fwdad

pytest.importorskip("numba")

from fwdad.codegen import call_entry
from fwdad.codegen.call_entry import compile_program
from fwdad.codegen.callbacks import outline
from fwdad.codegen.loops.arrays import functions
from fwdad.codegen.numba_support import CannotCompileError
from fwdad.codegen.numpy_backend.source import compiled, numpy_source
from fwdad.frontend.trace import trace
from tests.codegen.cached_programs import counted
from tests.codegen.numba_programs import CASES
from tests.tiers import every

X = np.linspace(0.1, 1.3, 7)


def line_of(f, text):
    """The line of a function's source that holds a text."""
    lines, first = inspect.getsourcelines(f)
    return first + next(k for k, line in enumerate(lines) if text in line)


def copies(args):
    return [a.copy(order="K") if isinstance(a, np.ndarray) else a for a in args]


def filtered(x, n):
    y = x.copy()
    for k in range(n):
        z = np.sin(y) * y + 0.5 * np.cos(x) * y - 1.0 / (1.0 + y * y)
        z = np.real(scipy.fft.ifft(scipy.fft.fft(z) * 0.5))
        for i in range(1, len(y)):
            y[i] += 0.1 * y[i - 1] * z[i] + k
    return y, y[1:].sum()


def test_loop_around_what_is_not_compiled():
    f = fwdad.jit(filtered)
    for n in (3, 0):
        for found, wanted in zip(f(X, n), filtered(X, n), strict=True):
            assert_allclose(found, wanted, rtol=1e-14)
    said = fwdad.explain(f)
    assert "run by Numba, which calls NumPy for\n" in said
    line = line_of(filtered, "scipy.fft")
    place = rf"test_outline.py:{line}: the function fft, the function ifft"
    counts = r"\(called 3 times, [\d.e+]+ µs a call, [\d]+ % of the time\)"
    assert re.search(f"{place} {counts}", said)
    shown, called = fwdad.show(f, backend="numba").split("def called_1(")
    assert "math.cos(" in shown
    assert "called_1(" in shown
    assert "return (ifft(fft(z) * 0.5),)" in called


def test_derivatives_that_call():
    def f(x):
        s = np.zeros_like(x)
        for i in range(1, len(x)):
            s[i] = 0.5 * s[i - 1] + np.sin(x[i]) * x[i - 1]
        return np.abs(scipy.fft.rfft(s)) * s[0:4]

    found = fwdad.jit(fwdad.jacfwd(f))
    assert_allclose(found(X), fwdad.jacobian(f, X), rtol=1e-12, atol=1e-14)
    assert "which calls NumPy for" in fwdad.explain(found)


# -- which operations are called


@pytest.fixture
def at_any_cost(monkeypatch):
    """Calls cost nothing, so that the rest is compiled, however little it is."""
    for name in ("_CROSSING", "_ARGUMENT"):
        monkeypatch.setattr(outline, name, 0.0)


@pytest.mark.slow_cases("along_an_axis", "place_of_an_array_without_axes-0")
@pytest.mark.parametrize("odd", [0, 1])
@pytest.mark.parametrize("k", every(4, range(len(CASES))), ids=[f.__name__ for f, _ in CASES])
def test_whichever_operations_are_called_it_returns_the_same(k, odd, monkeypatch, at_any_cost):
    f, arguments = CASES[k]
    tape = trace(f, *copies(arguments[0]))
    captured = [c.fetch() for c in tape.captures]
    leaves = [*outline._leaves([tape.program])]
    chosen = {op: CannotCompileError("this one", op.location) for op in leaves[odd::2]}
    test_each = outline._test_each

    def refuse(program, refused):
        refused.update(chosen)
        test_each(program, refused)

    monkeypatch.setattr(outline, "_test_each", refuse)
    compilable = outline.compilable
    wanted = CannotCompileError("every second operation")
    monkeypatch.setattr(call_entry, "compilable", lambda p, left=(): compilable(p, [wanted, *left]))
    made, plain = compile_program(tape.program), compiled(numpy_source(tape.program))
    if made.backend == "numpy":
        pytest.skip("nothing is left to compile")
    for args in arguments:
        ours, own = copies(args), copies(args)
        with np.errstate(all="ignore"):
            found, wanted = made.call(*ours, *captured), plain(*own, *captured)
        assert made.backend == "numba", made.left
        for a, b in zip([*found, *ours], [*wanted, *own], strict=True):
            assert type(a) is type(b)
            assert_allclose(a, b, rtol=1e-13, atol=1e-15)
    assert any(c.calls for c in made.source.callbacks)


def test_what_is_not_worth_a_call_stays():
    def f(x):
        return scipy.fft.fft(x * 2)

    assert fwdad.explain(fwdad.jit(f), X).count("NumPy, because") == 1


# -- memory


def test_calls_share_the_memory_of_views():
    def f(x):
        y = x.copy()
        v = y[1:4]
        w = scipy.fft.fft(v).real
        for i in range(3):
            v[i] = w[i] + y[i]
            y[i + 1] = 2.0 * v[i]
        return y, v

    found, wanted = fwdad.jit(f)(X), f(X)
    for a, b in zip(found, wanted, strict=True):
        assert_allclose(a, b, rtol=1e-14)
    assert np.shares_memory(*found)


def overwritten(x, i):
    x[0] = scipy.fft.fft(x)[0].real
    for k in range(3):
        x[k + i] = 2.0 * x[k]
    return x


def test_caller_s_array_is_written_once():
    f = fwdad.jit(overwritten)
    given, own = X.copy(), X.copy()
    assert_allclose(f(given, 2), overwritten(own, 2), rtol=1e-14)
    assert_allclose(given, own, rtol=1e-14)
    assert "which calls NumPy for" in fwdad.explain(f)
    given, own = X.copy(), X.copy()
    for function, x in ((f, given), (overwritten, own)):
        with pytest.raises(IndexError):
            function(x, 5)
    assert_allclose(given, own, rtol=1e-14)


def test_exceptions_are_those_of_python():
    def f(x, i):
        y = scipy.fft.fft(x).real
        for k in range(3):
            y[k + i] = 2.0 * y[k]
        return y

    g = fwdad.jit(f)
    assert_allclose(g(X, 1), f(X, 1), rtol=1e-14)
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0") as caught:
        g(X, 5)
    note = f"line {line_of(f, 'y[k + i]')}"
    assert [note in text for text in caught.value.__notes__] == [True]


# -- what Numba refuses although the source could be written


def test_line_that_numba_refuses_is_called_back(monkeypatch, reports):
    def handler(w, _op, a, b):
        return f"np.block({w.operands.array(a)}, {w.operands.array(b)})"

    monkeypatch.setitem(functions.HANDLERS, np.outer, handler)

    def f(x):
        s = x.copy()
        for i in range(1, len(x)):
            s[i] += s[i - 1]
        m = np.outer(s, s)
        for i in range(len(x)):
            m[i, i] += 1.0
        return m

    g = fwdad.jit(f)
    for _ in range(2):
        assert_allclose(g(X), f(X), rtol=1e-14)
    said = fwdad.explain(g)
    assert "which calls NumPy for" in said
    place = f"test_outline.py:{line_of(f, 'np.outer')}"
    assert f"{place}: Numba says" in said
    (record,) = reports
    assert "compiling f failed" in record.getMessage()
    assert place in record.getMessage()
    reports.clear()


def test_compiled_code_that_raises_where_numpy_returns_is_reported(monkeypatch, reports):
    def handler(w, _op, _a, _b):
        w.code.line("raise ValueError('planted')")
        return "np.zeros((6, 6))"

    monkeypatch.setitem(functions.HANDLERS, np.outer, handler)

    def f(x):
        return np.outer(x, x)

    g = fwdad.jit(f)
    for _ in range(2):
        assert_allclose(g(X), f(X), rtol=1e-14)
    (record,) = reports
    assert "the compiled code of f failed" in record.getMessage()
    assert "ValueError: planted" in record.getMessage()
    reports.clear()


def test_code_that_calls_is_found_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("FWDAD_CACHE_DIR", str(tmp_path))
    count = counted()
    program = trace(filtered, X, 2).program
    for _ in range(2):
        made = compile_program(program)
        assert_allclose(made.call(X, 2)[0], filtered(X, 2)[0], rtol=1e-14)
        assert [c.calls for c in made.source.callbacks] == [2]  # the two of a line are one
    logging.getLogger("fwdad.cache").setLevel(logging.NOTSET)
    assert count["saved"] == count["loaded"] == 1


def stored_between_calls(x):
    """A view that one call makes is written into by what is compiled."""
    v = np.sin(2 * x)
    w = v[2:6]
    w *= np.cos(w)
    v[0:4] += v.reshape(2, 3).ravel()[2:]
    return np.sum(v * np.arange(6.0))


def test_views_of_a_call_are_written_elsewhere():
    x = np.linspace(0.2, 1.4, 6)
    gradient = fwdad.jit(fwdad.grad(stored_between_calls), backend="numba")(x)
    assert_allclose(gradient, fwdad.jacobian(stored_between_calls, x), rtol=1e-13)
