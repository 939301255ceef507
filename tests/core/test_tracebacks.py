"""Exceptions as users see them: their own frames, in Python, pytest and IPython."""

import os
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest

import fwdad

X = np.array([1.0, 2.0, 3.0])


def helper(y):
    if y[0] > 0.5:
        raise ValueError("mine")
    return y


def f(x):
    return np.sum(helper(np.sin(x)) * x)


def singular(x):
    return np.sum(np.linalg.inv(np.outer(x, x)))


def outside(x):
    return x[10] * x[0]


def leaks(x):
    return int(x[0]) * x[1]


WAYS = {
    "jvp": lambda g: fwdad.jvp(g, X, X),
    "jvp, two ways": lambda g: fwdad.jvp(g, X),
    "jacobian": lambda g: fwdad.jacobian(g, X, chunk=2),
    "derivatives": lambda g: fwdad.value_and_jacobian(g, X),
    "jacfwd": lambda g: fwdad.jacfwd(g)(X),
    "jacrev": lambda g: fwdad.jacrev(g)(X),
    "grad": lambda g: fwdad.grad(g)(X),
    "value_and_grad": lambda g: fwdad.value_and_grad(g)(X),
    "vjp": lambda g: fwdad.vjp(g, X),
    "linearize": lambda g: fwdad.linearize(g, X),
    "hessian": lambda g: fwdad.hessian(g, X),
    "hvp": lambda g: fwdad.hvp(g, X, X),
    "jit(grad)": lambda g: fwdad.jit(fwdad.grad(g))(X),
    "jit(jacfwd)": lambda g: fwdad.jit(fwdad.jacfwd(g))(X),
    "grad(jit)": lambda g: fwdad.grad(fwdad.jit(g))(X),
    "nested": lambda g: fwdad.grad(lambda x: np.sum(fwdad.grad(g)(x)))(X),
}


def raised(way, g):
    """What leaves a derivative; its traceback begins with the way's own frame."""
    try:
        WAYS[way](g)
    except Exception as error:  # noqa: BLE001  (whatever it is)
        return error
    pytest.fail("nothing was raised")


def frames(error):
    return [(Path(s.filename).name, s.name) for s in traceback.extract_tb(error.__traceback__)]


def chain(error):
    """An exception and all that it is shown with."""
    seen = []
    while error is not None:
        seen.append(error)
        error = error.__cause__ or error.__context__
    return seen


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("g", "cls", "last"),
    [(f, ValueError, ["f", "helper"]), (outside, IndexError, ["outside"]),
     (leaks, fwdad.errors.DualLeakError, ["leaks"])],
)  # fmt: skip
def test_the_users_frames_and_no_others(way, g, cls, last):
    error = raised(way, g)
    assert isinstance(error, cls)
    assert chain(error) == [error]
    found = frames(error)
    # conftest.py checks the tapes that are made
    assert {file for file, _ in found} <= {Path(__file__).name, "conftest.py"}
    names = [name for _, name in found]
    if (
        "jit" not in way or cls is not fwdad.errors.DualLeakError
    ):  # which is found before anything runs
        assert names[-len(last) :] == last or getattr(error, "__notes__", None)
    shown = "".join(traceback.format_exception(error))
    assert g.__code__.co_filename in shown
    wanted = {"f": 'raise ValueError("mine")', "outside": "return x[10] * x[0]",
              "leaks": "return int(x[0]) * x[1]"}[g.__name__]  # fmt: skip
    assert wanted in shown


@pytest.mark.parametrize("way", WAYS)
def test_frames_of_libraries_stay(way):
    error = raised(way, singular)
    assert isinstance(error, np.linalg.LinAlgError)
    assert not any("fwdad" in s.filename for s in traceback.extract_tb(error.__traceback__)
                   if s.filename != __file__)  # fmt: skip
    assert chain(error) == [error]


WRONG = {
    "no function": lambda: fwdad.grad(3)(X),
    "an int": lambda: fwdad.jvp(f, 3, 1.0),
    "by name": lambda: fwdad.grad(f)(x=X),
    "seed": lambda: fwdad.jvp(f, X, np.ones(2)),
    "chunk": lambda: fwdad.jacobian(f, X, chunk=-1),
    "cotangent": lambda: fwdad.vjp(np.sin, X)[1](np.ones(2)),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_wrong_arguments_end_at_the_callers_line(call):
    with pytest.raises(fwdad.errors.FwdadError) as caught:
        call()
    assert [name for _, name in frames(caught.value)][1:] == ["<lambda>"]
    assert caught.value.lineno == call.__code__.co_firstlineno


@pytest.mark.parametrize("way", ["jvp", "grad", "jit(grad)"])
def test_all_frames(way, monkeypatch):
    monkeypatch.setenv("FWDAD_TRACEBACK", "full")
    files = {file for file, _ in frames(raised(way, f))}
    assert len(files) > 3


def test_the_users_own_chains_stay():
    def g(x):
        try:
            helper(x)
        except ValueError as error:
            raise RuntimeError("outer") from error

    def h(x):
        try:
            helper(x)
        except ValueError:
            return {}["second"] * x

    for way in ("jvp", "grad", "hessian"):
        error = raised(way, g)
        assert [type(e) for e in chain(error)] == [RuntimeError, ValueError]
        assert {file for e in chain(error) for file, _ in frames(e)} == {Path(__file__).name}
        assert [type(e) for e in chain(raised(way, h))] == [KeyError, ValueError]


def test_what_the_caller_handles_stays_the_context():
    try:
        raise ZeroDivisionError  # noqa: TRY301
    except ZeroDivisionError:
        error = raised("grad", f)
    assert [type(e) for e in chain(error)] == [ValueError, ZeroDivisionError]


PROGRAM = """
import numpy as np, fwdad
def f(x):
    y = np.sin(x)
    return int(y[0]) * x[1]
fwdad.grad(f)(np.ones(3))
"""


def test_plain_python(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(Path(fwdad.__file__).parent.parent), "NO_COLOR": "1"}
    run = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False,
                         env=env)  # fmt: skip
    head = 'Traceback (most recent call last):\n  File "{0}", line 6, in <module>\n'
    assert run.stderr.startswith(head.format(path))
    assert "core/tracebacks.py" not in run.stderr
    assert run.stderr.endswith(
        f'  File "{path}", line 5\n    return int(y[0]) * x[1]\n           ^^^^^^^^^\n'
    )


def test_ipython(capsys):
    """An ordinary exception, not displayed as one of the cell's syntax."""
    shells = pytest.importorskip("IPython.core.interactiveshell")
    shell = shells.InteractiveShell()
    shell.colors = "nocolor"
    shell.run_cell(PROGRAM.rpartition("fwdad.grad")[0], store_history=True)
    shell.run_cell("fwdad.grad(f)(np.ones(3))", store_history=True)
    told = capsys.readouterr()
    shown = told.out + told.err
    assert "Traceback (most recent call last)" in shown
    assert "fwdad.grad(f)(np.ones(3))" in shown
    assert "DualLeakError: a value that carries a derivative" in shown
    assert "    return int(y[0]) * x[1]\n           ^^^^^^^^^" in shown
    assert "dispatch.py" not in shown


def test_a_function_that_was_shown_by_ipython_is_still_read(capsys):
    """IPython links the nodes of its syntax trees to their parents, shared ones among them."""
    shells = pytest.importorskip("IPython.core.interactiveshell")
    shell = shells.InteractiveShell()
    shell.run_cell("def shown(x):\n    if x > 0: return {}[x]\nshown(1)", store_history=True)

    def compared(x):
        return x * x if x[0] > 0 else x

    assert fwdad.jvp(compared, X, X)[1].tolist() == [2.0, 8.0, 18.0]
    assert "KeyError" in "".join(capsys.readouterr())


def test_public_functions_look_like_themselves():
    assert fwdad.jvp.__module__ == "fwdad.evaluation.evaluators"
    assert fwdad.jvp.__globals__ is sys.modules["fwdad.evaluation.evaluators"].__dict__
    assert fwdad.jvp.__name__ == "jvp"


def test_inside_a_trace():
    """Public functions without a meaning of their own in a trace are traced from their source."""
    twice = fwdad.jit(lambda x: fwdad.hvp(lambda y: np.sum(y**3), x, x), backend="numpy")
    np.testing.assert_allclose(twice(X), 6 * X * X)
