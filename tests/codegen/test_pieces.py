"""Programs that Numba cannot compile as a whole: compiled pieces, and NumPy between them."""

import inspect
import logging
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad

pytest.importorskip("numba")

from fwdad.codegen.call_entry import compile_program
from fwdad.codegen.loops.arrays import functions
from fwdad.codegen.numba_support import CannotCompileError
from fwdad.codegen.numpy_backend.source import compiled, numpy_source
from fwdad.codegen.partition.pieces import cut
from fwdad.frontend.trace import trace
from fwdad.ir.check import check_program
from fwdad.ir.ops import walk
from tests.codegen.cached_programs import counted
from tests.codegen.numba_programs import CASES

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
        z = np.real(np.fft.ifft(np.fft.fft(z) * 0.5))
        for i in range(1, len(y)):
            y[i] += 0.1 * y[i - 1] * z[i] + k
    return y, y[1:].sum()


def test_loop_around_what_is_not_compiled():
    f = fwdad.jit(filtered)
    for n in (3, 0):
        for found, wanted in zip(f(X, n), filtered(X, n), strict=True):
            assert_allclose(found, wanted, rtol=1e-14)
    said = fwdad.explain(f)
    assert re.search(r"run by Numba in \d pieces of \d+, the others by NumPy, because", said)
    place = f"test_pieces.py:{line_of(filtered, 'np.fft')}: the function fft"
    assert place in said
    shown = fwdad.show(f, backend="numba")
    assert "np.fft.fft(" in shown.split("@njit")[0]
    assert "math.cos(" in shown.split("@njit", maxsplit=1)[1]
    assert cut(trace(filtered, X, 2).program).pieces[0].name in shown


def test_derivatives_in_pieces():
    def f(x):
        s = np.zeros_like(x)
        for i in range(1, len(x)):
            s[i] = 0.5 * s[i - 1] + np.sin(x[i]) * x[i - 1]
        return np.abs(np.fft.rfft(s)) * s[0:4]

    found = fwdad.jit(fwdad.jacfwd(f))
    assert_allclose(found(X), fwdad.jacobian(f, X), rtol=1e-12, atol=1e-14)
    assert "in 2 pieces" in fwdad.explain(found)


# -- how a program is cut


def places(program):
    return {op.location for op in walk(program.block) if op.location and not op.blocks()}


@pytest.mark.parametrize("k", range(len(CASES)), ids=[f.__name__ for f, _ in CASES])
def test_wherever_a_program_is_cut_it_returns_the_same(k, monkeypatch):
    monkeypatch.setattr("fwdad.codegen.partition.pieces._CROSSING", 0.0)
    monkeypatch.setattr("fwdad.codegen.partition.pieces._ARGUMENT", 0.0)
    f, arguments = CASES[k]
    tape = trace(f, *copies(arguments[0]))
    captured = [c.fetch() for c in tape.captures]
    for place in places(tape.program):
        made = cut(tape.program, [CannotCompileError("this line", place)])
        check_program(made.program)
        run, plain = compiled(numpy_source(made.program)), compiled(numpy_source(tape.program))
        for args in arguments:
            given, own = copies(args), copies(args)
            with np.errstate(all="ignore"):
                found, wanted = run(*given, *captured), plain(*own, *captured)
            for a, b in zip([*found, *given], [*wanted, *own], strict=True):
                assert type(a) is type(b)
                assert_array_equal(a, b)


def test_what_is_not_worth_a_call_stays():
    def f(x):
        return np.fft.fft(x * 2)

    assert not cut(trace(f, X).program).pieces
    assert fwdad.explain(fwdad.jit(f), X).count("NumPy, because") == 1


# -- memory


def test_pieces_share_the_memory_of_views():
    def f(x):
        y = x.copy()
        v = y[1:4]
        w = np.fft.fft(v).real
        for i in range(3):
            v[i] = w[i] + y[i]
            y[i + 1] = 2.0 * v[i]
        return y, v

    found, wanted = fwdad.jit(f)(X), f(X)
    for a, b in zip(found, wanted, strict=True):
        assert_allclose(a, b, rtol=1e-14)
    assert np.shares_memory(*found)


def overwritten(x, i):
    x[0] = np.fft.fft(x)[0].real
    for k in range(3):
        x[k + i] = 2.0 * x[k]
    return x


def test_caller_s_array_is_written_once():
    f = fwdad.jit(overwritten)
    given, own = X.copy(), X.copy()
    assert_allclose(f(given, 2), overwritten(own, 2), rtol=1e-14)
    assert_allclose(given, own, rtol=1e-14)
    assert "in 1 piece" in fwdad.explain(f)
    given, own = X.copy(), X.copy()
    for function, x in ((f, given), (overwritten, own)):
        with pytest.raises(IndexError):
            function(x, 5)
    assert_allclose(given, own, rtol=1e-14)


def test_exceptions_are_those_of_python():
    def f(x, i):
        y = np.fft.fft(x).real
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


def test_line_that_numba_refuses_is_left(monkeypatch, reports):
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
    assert "in 2 pieces" in said
    place = f"test_pieces.py:{line_of(f, 'np.outer')}"
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


def test_pieces_are_found_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("FWDAD_CACHE_DIR", str(tmp_path))
    count = counted()
    program = trace(filtered, X, 2).program
    for _ in range(2):
        made = compile_program(program)
        assert_allclose(made.call(X, 2)[0], filtered(X, 2)[0], rtol=1e-14)
    logging.getLogger("fwdad.cache").setLevel(logging.NOTSET)
    assert count["saved"] == count["loaded"] == len(made.pieces)


def stored_between_pieces(x):
    """A view that one piece makes is written into by what runs between the pieces."""
    v = np.sin(2 * x)
    w = v[2:6]
    w *= np.cos(w)
    v[0:4] += v.reshape(2, 3).ravel()[2:]
    return np.sum(v * np.arange(6.0))


def test_views_of_a_piece_are_written_elsewhere():
    x = np.linspace(0.2, 1.4, 6)
    gradient = fwdad.jit(fwdad.grad(stored_between_pieces), backend="numba")(x)
    assert_allclose(gradient, fwdad.jacobian(stored_between_pieces, x), rtol=1e-13)
