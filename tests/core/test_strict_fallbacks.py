"""``FWDAD_STRICT=1``: what a slower way would make good is raised."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.core import fallbacks
from fwdad.core.fallbacks import Raised, origin
from fwdad.drivers import jitted_function, tape_cache
from fwdad.frontend import specialise

X = np.array([0.3, 0.7, 1.1])


def of_fwdad(source, name="planted"):
    """A function of some source, as if it stood in a file of fwdad's."""
    namespace = {}
    exec(compile(source, fwdad.errors.PACKAGE + "planted.py", "exec"), namespace)
    return namespace[name]


planted = of_fwdad("def planted(*given, **options):\n    {}['planted']\n")
meant = of_fwdad("def planted(*given, **options):\n    raise ValueError('meant')\n")


def smooth(x):
    return np.sum(np.sin(x) * x)


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """No tape is known."""
    monkeypatch.setattr(tape_cache, "TAPES", tape_cache.Tapes())


def caught(f):
    with pytest.raises(Exception) as raised:  # noqa: PT011  (whatever it is)
        f()
    return raised.value


WAYS = {
    "grad": lambda f: fwdad.grad(f)(X),
    "vjp": lambda f: fwdad.vjp(f, X)[1](1.0),
    "jacrev": lambda f: fwdad.jacrev(f)(X),
    "linearize": lambda f: fwdad.linearize(f, X)[1].rmatvec(np.ones(1)),
    "hvp": lambda f: fwdad.hvp(f, X, np.ones(3)),
}


@pytest.mark.parametrize("way", WAYS)
def test_strict(way, reports, monkeypatch):
    monkeypatch.setenv("FWDAD_STRICT", "1")
    monkeypatch.setattr(jitted_function, "trace_optimised", planted)
    with pytest.raises(fwdad.errors.InternalError, match="please report") as raised:
        WAYS[way](smooth)
    cause = raised.value.__cause__
    while isinstance(cause, fwdad.errors.InternalError):
        cause = cause.__cause__
    assert type(cause) is KeyError
    assert "raised at planted.py:2" in str(raised.value)
    assert raised.value.filename == __file__
    frames = cause.__traceback__
    assert frames.tb_next is not None  # what is to be reported keeps fwdad's own
    reports.clear()


@pytest.mark.parametrize("value", ["", "0"])
def test_not_strict(value, reports, monkeypatch):
    monkeypatch.setenv("FWDAD_STRICT", value)
    monkeypatch.setattr(jitted_function, "trace_optimised", planted)
    assert_allclose(fwdad.grad(smooth)(X), np.cos(X) * X + np.sin(X), rtol=1e-13)
    assert len(reports) == 1
    reports.clear()


def without_sines(program):
    """A pass that is wrong: it removes what others use."""
    specialise_optimise(program)
    ops = program.block.ops
    ops[:] = [op for op in ops if getattr(op, "function", None) is not np.sin]


specialise_optimise = specialise.optimise


def test_malformed_tapes_do_not_run(reports, monkeypatch):
    """What is undefined would be any number in compiled code."""
    monkeypatch.setattr(specialise, "optimise", without_sines)
    with pytest.raises(fwdad.errors.InternalError, match="used before it is defined"):
        fwdad.jit(smooth)(X)
    reports.clear()
    monkeypatch.setenv("FWDAD_STRICT", "0")
    assert_allclose(fwdad.grad(smooth)(X), np.cos(X) * X + np.sin(X), rtol=1e-13)
    assert len(reports) == 1
    reports.clear()


def test_refusals_and_the_programs_own_are_not_raised_as_mistakes():
    def refused(x):
        return np.sum(x * float(np.array2string(x) == ""))

    def missing(x):
        return {}["no"] * x[0]

    assert_allclose(fwdad.grad(refused)(X), 0.0)
    with pytest.raises(KeyError, match="no"):
        fwdad.grad(missing)(X)


def test_a_mistake_in_jit_says_so_although_nothing_makes_it_good(reports, monkeypatch):
    monkeypatch.setattr(jitted_function, "trace_optimised", planted)
    for f in (fwdad.jit(smooth), fwdad.jit(fwdad.grad(smooth))):
        with pytest.raises(
            fwdad.errors.InternalError, match="under jit failed: KeyError"
        ) as raised:
            f(X)
        assert type(raised.value.__cause__) is KeyError
    reports.clear()  # of the gradient that was tried without jit


def test_wrong_arguments_of_a_function_under_jit_are_no_mistake_of_ours():
    with pytest.raises(TypeError) as raised:
        fwdad.jit(smooth)(X, X)
    assert not isinstance(raised.value, fwdad.errors.FwdadError)


# -- whose an exception is, the place tells, not the class


def test_origins():
    def raised_by_code_of_the_users():
        raise KeyError("mine")

    def in_numpy():
        np.linalg.inv(np.zeros((2, 2)))

    assert origin(caught(raised_by_code_of_the_users)).by is Raised.USER
    assert origin(caught(in_numpy)).by is Raised.USER
    assert origin(caught(planted)).by is Raised.MISTAKE
    assert origin(caught(meant)).by is Raised.MEANT
    assert origin(KeyError("never raised")).by is Raised.NOWHERE
    found = origin(caught(lambda: fwdad.jit(lambda x: x[7], backend="numpy")(X)))
    assert (found.by, found.place.filename) == (Raised.USER, __file__)  # frames of ours are hidden


def test_the_origin_of_what_a_tape_raises(monkeypatch):
    monkeypatch.setenv("FWDAD_TRACEBACK", "full")

    def outside(x):
        return x[7]

    def always(x):
        return [1, 2][5] * x  # noqa: PLE0643  (it is meant)

    line = outside.__code__.co_firstlineno + 1
    found = origin(caught(lambda: fwdad.jit(outside, backend="numpy")(X)))
    assert (found.by, found.place.line) == (Raised.TAPE, line)
    found = origin(caught(lambda: fwdad.jit(always, backend="numpy")(X)))
    assert (found.by, found.place.line) == (Raised.PROGRAM, always.__code__.co_firstlineno + 1)


def test_where_to_report(monkeypatch):
    class Known:
        @staticmethod
        def get_all(_name):
            return ["Homepage, https://a.example", "Issues, https://a.example/issues"]

    monkeypatch.setattr("importlib.metadata.metadata", lambda _name: Known)
    assert fallbacks.please_report.__wrapped__().endswith("report it at https://a.example/issues")


def test_errors_are_copied_and_pickled():
    error = fwdad.errors.InvertibilityError("x", "v", __file__, 3, 1.0, 2.0)
    error.add_note("a note")
    for again in (copy.copy(error), *(pickle.loads(pickle.dumps(error, p)) for p in range(6))):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert (again.variable, again.line, again.expected, again.found) == ("v", 3, 1.0, 2.0)
        assert again.__notes__ == ["a note"]
