"""What a slower way makes good is reported, and every test looks for it."""

import inspect
import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.core import fallbacks
from fwdad.core.fallbacks import Untraced
from fwdad.drivers import (
    jitted_function,
    linearized,
    residual_store,
    specialisation,
    tape_cache,
)
from fwdad.frontend.derivatives.pulled import pulled_gradient
from tests.differences import central_differences

X = np.array([0.3, 0.7, 1.1])


def traced_and_raises(*_given, **_options):
    raise KeyError("planted")


GRADIENT = np.cos(X) * X + np.sin(X)


def smooth(x):
    return np.sum(np.sin(x) * x)


def of_fwdad(source, name="planted"):
    """A function of some source, as if it stood in a file of fwdad's."""
    namespace = {}
    exec(compile(source, fwdad.errors.PACKAGE + "planted.py", "exec"), namespace)
    return namespace[name]


planted = of_fwdad("def planted(*given, **options):\n    {}['planted']\n")


@pytest.fixture
def fresh(monkeypatch):
    """No tape is known."""
    monkeypatch.setattr(tape_cache, "TAPES", tape_cache.Tapes())


def only(reports):
    """The one report, taken out."""
    (record,) = reports
    reports.clear()
    return record.getMessage()


WAYS = {
    "grad": lambda f: fwdad.grad(f)(X),
    "vjp": lambda f: fwdad.vjp(f, X)[1](1.0),
    "jacrev": lambda f: fwdad.jacrev(f)(X),
    "linearize": lambda f: fwdad.linearize(f, X)[1].rmatvec(np.ones(1)),
    "hvp": lambda f: fwdad.hvp(f, X, np.ones(3)) * 0 + GRADIENT,
}


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("way", WAYS)
def test_a_mistake_while_tracing_is_reported(way, reports, monkeypatch):
    monkeypatch.setattr(jitted_function, "trace_optimised", planted)
    assert_allclose(WAYS[way](smooth), GRADIENT, rtol=1e-13)
    assert reports
    message = reports[0].getMessage()
    reports.clear()
    assert "the tape of smooth failed" in message
    assert "KeyError: 'planted' (raised at planted.py:2)" in message
    assert f"({__file__}:" in message


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("way", "module", "name"),
    [("grad", specialisation, "Runner"), ("vjp", residual_store, "Runner"),
     ("vjp", residual_store, "cut"),
     ("linearize", linearized, "Linearized"), ("linearize", linearized, "value_and_pullback"),
     ("linearize", linearized, "sweeps_of")],
)  # fmt: skip
def test_a_mistake_while_running_is_reported(way, module, name, reports, monkeypatch):
    traced = name == "value_and_pullback"  # its source is read, as a program's
    monkeypatch.setattr(module, name, traced_and_raises if traced else planted)
    assert_allclose(WAYS[way](smooth), GRADIENT, rtol=1e-13)
    assert "KeyError" in only(reports)


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("way", WAYS)
def test_no_memory_is_no_mistake(way, reports, monkeypatch):
    """The function is run in another way, and its tape is tried again at the next call."""
    calls = []
    trace = jitted_function.trace_optimised

    def at_first_without_memory(*given, **options):
        calls.append(1)
        if len(calls) == 1:
            raise MemoryError
        return trace(*given, **options)

    monkeypatch.setattr(jitted_function, "trace_optimised", at_first_without_memory)
    assert_allclose(WAYS[way](smooth), GRADIENT, rtol=1e-13)
    assert not reports
    before = len(calls)
    assert before
    assert_allclose(WAYS[way](smooth), GRADIENT, rtol=1e-13)
    assert len(calls) > before


@pytest.mark.usefixtures("fresh")
def test_a_mistake_of_a_shortcut_is_reported(reports, monkeypatch):
    fwdad.grad(smooth)(X)
    monkeypatch.setattr(jitted_function.Jitted, "quickly", planted)
    assert_allclose(fwdad.grad(smooth)(X), GRADIENT, rtol=1e-13)
    assert "the tape of smooth" in only(reports)


def test_each_place_is_reported_once(reports):
    for _ in range(2):
        for _ in range(3):
            fallbacks.report("a planted mistake", KeyError("planted"), "Nothing is done")
        only(reports)
        fallbacks.forget()


# -- what is no mistake


def refused(x):
    return np.sum(x * float(x[0] > 1e9 or np.array2string(x) == ""))


def missing(x):
    return {}["no"] * x[0]


def singular(x):
    return np.sum(np.linalg.inv(np.outer(x, x)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("f", "error"), [(missing, KeyError), (singular, np.linalg.LinAlgError)])
def test_what_the_program_raises_is_no_mistake(way, f, error, reports):
    with pytest.raises(error) as raised:
        WAYS[way](f)
    assert raised.value.__context__ is None or way == "linearize"
    assert reports == []


def test_a_refusal_is_no_mistake(reports):
    fwdad.grad(refused)(X)
    assert reports == []


def unequal(x, y):
    return np.sum(x * y)


@pytest.mark.usefixtures("fresh")
def test_a_call_that_raises_does_not_cost_the_tape():
    with pytest.raises(ValueError, match="broadcast"):
        fwdad.grad(unequal)(X, np.ones(2))
    held = tape_cache.tape_for(pulled_gradient, unequal, 0, {"has_aux": False})
    assert isinstance(held, jitted_function.Jitted)


def test_of_what_the_way_that_stands_in_raises(reports):
    """What is raised in the same line is the program's own, whatever its class."""
    mistake = caught(planted)
    here = fwdad.errors.Location(__file__, inspect.currentframe().f_lineno + 3, 1)
    fwdad.errors.note_place(mistake, here)
    with pytest.raises(ValueError, match="a"), Untraced(smooth, mistake).instead():
        raise ValueError("a")
    assert reports == []
    with pytest.raises(KeyError), Untraced(smooth, mistake).instead():
        raise KeyError  # the same class, in another line
    assert "KeyError" in only(reports)
    refusal = fwdad.errors.DualLeakError("a")
    with pytest.raises(fwdad.errors.DualLeakError), Untraced(smooth, caught(planted)).instead():
        raise refusal
    assert "KeyError" in only(reports)


def caught(f):
    """What a function raises."""
    with pytest.raises(Exception) as raised:  # noqa: PT011  (whatever it is)
        f()
    return raised.value


def test_what_code_of_the_users_raises_while_a_tape_is_made_is_no_mistake_of_ours(reports):
    def theirs():
        raise KeyError("theirs")

    with Untraced(smooth, caught(theirs)).instead():
        pass
    message = only(reports)
    assert "please report" not in message
    assert f"The error comes from code outside fwdad: {__file__}:" in message


# -- rules


def cube(x):
    return x * x * x


@fwdad.frule(cube)
def cube_frule(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    if hasattr(x, "__fwdad_symbolic__"):
        {}["planted"]
    return x * x * x, 3 * x * x * x_dot


def cubes(x):
    return np.sum(cube(x))


@pytest.mark.parametrize("way", ["grad", "jacfwd"])
def test_a_mistake_of_a_rule_is_reported(way, reports):
    derivative = fwdad.jit(getattr(fwdad, way)(cubes), backend="numpy")
    assert_allclose(derivative(X), 3 * X * X, rtol=1e-13)
    message = only(reports)
    line = cubes.__code__.co_firstlineno + 1
    assert f"the rule of {__name__}.cube on a tape failed ({__file__}:{line})" in message
    assert "KeyError: 'planted'" in message
    said = fwdad.explain(derivative, X)
    assert "cube is run whole, because its rule raised KeyError: 'planted'. " in said
    reports.clear()


# -- explain, the log, and the tests


@pytest.mark.usefixtures("fresh")
def test_explained(reports, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(jitted_function, "trace_optimised", planted)
        for said in (fwdad.explain(fwdad.grad(smooth), X), fwdad.explain(fwdad.vjp, smooth, X)):
            assert "because\n  KeyError: 'planted'\n  This is a mistake in fwdad, please" in said
    assert "mistake" not in fwdad.explain(fwdad.grad(singular), X)
    assert "mistake" not in fwdad.explain(fwdad.grad(missing), X)
    assert "mistake" not in fwdad.explain(fwdad.grad(smooth), X)
    assert "whole" in fwdad.explain(fwdad.grad(cubes), X)
    reports.clear()


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("level", [logging.DEBUG, logging.WARNING])
def test_with_traceback_for_who_debugs(level, reports, monkeypatch):
    monkeypatch.setattr(jitted_function, "trace_optimised", planted)
    monkeypatch.setattr(fallbacks.LOG, "level", level)
    fallbacks.LOG._cache.clear()
    fwdad.grad(smooth)(X)
    (record,) = reports
    assert bool(record.exc_info) is (level == logging.DEBUG)
    reports.clear()
    fallbacks.LOG._cache.clear()


PLANTED = """
import numpy as np
import fwdad
from fwdad.drivers import jitted_function

source = "def planted(*given, **options):\\n    {}['planted']"
exec(compile(source, fwdad.errors.PACKAGE + "planted.py", "exec"))

def test_passes():
    assert fwdad.grad(lambda x: np.sum(x * x))(np.ones(2)).tolist() == [2.0, 2.0]

def test_fails(monkeypatch):
    monkeypatch.setattr(jitted_function, "trace_optimised", planted)
    assert fwdad.grad(lambda x: np.sum(x * x))(np.ones(2)).tolist() == [2.0, 2.0]
"""


def test_a_test_that_passes_by_a_slower_way_fails(tmp_path):
    here = Path(__file__).parents[1]
    (tmp_path / "test_planted.py").write_text(PLANTED, encoding="utf-8")
    (tmp_path / "conftest.py").write_text(
        (here / "conftest.py").read_text(encoding="utf-8"), encoding="utf-8"
    )
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
         "-c", here.parent / "pyproject.toml", "--rootdir", tmp_path, tmp_path],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "1 failed, 1 passed" in run.stdout
    assert "fwdad.errors.InternalError: the tape of <lambda> failed: KeyError" in run.stdout
    assert "KeyError: 'planted'" in run.stdout


def not_positive(a):
    if a[0] > 0:
        raise ValueError("no")
    return np.sum(a * a)


def caught_gradient(x):
    try:
        return fwdad.grad(not_positive)(x) + x
    except ValueError:
        return x * 2


def caught_jvp(x):
    try:
        return fwdad.jvp(not_positive, x, x)[1] + x
    except ValueError:
        return x * 2


@pytest.mark.parametrize("f", [caught_gradient, caught_jvp])
@pytest.mark.parametrize("backend", [None, "numpy", "numba"])
def test_what_the_program_catches_is_no_mistake(f, backend, caplog):
    """A tape may raise what the function catches: the function runs without it, without a word."""
    if backend == "numba":
        pytest.importorskip("numba")
    g = f if backend is None else fwdad.jit(f, backend=backend)
    x = np.array([0.4, 0.9, -0.3])
    by = [
        fwdad.jacfwd(g),
        fwdad.jacrev(g),
        lambda x: fwdad.vjp(g, x)[1](np.eye(3)),
        lambda x: fwdad.linearize(g, x)[1] @ np.eye(3),
    ]
    for way in by:
        for y in (-x, x, x, -x, x):  # each way with its own tape, and those that are there
            expected = central_differences(f, y)
            assert np.allclose(way(y), expected, rtol=1e-8, atol=1e-8)
    assert np.allclose(fwdad.jacrev(fwdad.jacfwd(g))(x), 0.0)
    assert not caplog.records
