"""Debuggers in differentiated functions: they stop in the user's frame, on plain values."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fwdad
from tests.tiers import every

PROGRAM = """
import pdb
from pdb import set_trace
import numpy as np, fwdad

def f(x, k=2):
    y = np.sin(x) * k
    z = {{"a": y[0]}}
    {stop}
    w = y * y
    return np.sum(w) + z["a"]

X = np.array([1.0, 2.0, 3.0])
print("ANSWER", {call})
"""
COMMANDS = "p x\np x + 1\np x.shape\np x[0]\np z\np k\nn\nn\np w\nc\nc\nc\nc\nc\nc\n"

CALLS = {
    "jvp": "fwdad.jvp(f, X, X)[1]",
    "grad": "fwdad.grad(f)(X)",
    "vjp": "fwdad.vjp(f, X)[1](1.0)",
    "jacobian": "fwdad.jacobian(f, X, chunk=2)",
    "hessian": "np.sum(fwdad.hessian(f, X))",
}


def run(tmp_path, stop, call):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(stop=stop, call=call), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(Path(fwdad.__file__).parent.parent), "NO_COLOR": "1"}
    env.pop("PYTHONBREAKPOINT", None)
    done = subprocess.run([sys.executable, path], input=COMMANDS, capture_output=True, text=True,
                          check=False, timeout=120, env=env)  # fmt: skip
    return path, done


@pytest.mark.every(4)
@pytest.mark.parametrize("stop", ["breakpoint()", "pdb.set_trace()", "set_trace()"])
@pytest.mark.parametrize("call", every(2, CALLS))
def test_stops_in_the_users_frame(tmp_path, stop, call):
    path, done = run(tmp_path, stop, CALLS[call])
    stops = [line for line in done.stdout.splitlines() if line.startswith("> ")]
    assert stops[0].startswith(f"> {path}(")
    assert stops[0].endswith("f()")
    for plain in ("array([1., 2., 3.])", "array([2., 3., 4.])", "(3,)", "np.float64(1.0)",
                  "{'a': np.float64(1.6829", "(Pdb) 2\n", "array([2.83229367, 3.3072"):  # fmt: skip
        assert plain in done.stdout
    assert "ANSWER" in done.stdout, done.stderr


@pytest.mark.parametrize("stop", ["breakpoint()", "pdb.set_trace()"])
def test_under_jit_the_line_is_refused(tmp_path, stop):
    path, done = run(tmp_path, stop, "fwdad.jit(fwdad.grad(f))(X)")
    assert "Pdb" not in done.stdout
    assert "UntraceableError" in done.stderr
    assert "take the call out" in done.stderr
    assert f'File "{path}", line 9\n    {stop}' in done.stderr


@pytest.mark.parametrize("way", ["grad", "jvp", "hessian"])
def test_a_method_of_that_name_is_differentiated(way):
    class Matrix:
        def set_trace(self, x):
            self.trace = x
            return np.sum(x * x)

    def f(x):
        m = Matrix()
        return m.set_trace(x) * m.trace[0]

    x = np.array([1.0, 2.0])
    if way == "grad":
        np.testing.assert_allclose(fwdad.grad(f)(x), [7.0, 4.0])
    elif way == "jvp":
        np.testing.assert_allclose(fwdad.jvp(f, x, x)[1], 15.0)
    else:
        np.testing.assert_allclose(fwdad.hessian(f, x), [[6.0, 4.0], [4.0, 2.0]])


@pytest.mark.parametrize("of", [fwdad.grad, fwdad.jacfwd, lambda f: fwdad.vjp(f, np.ones(2))[1]])
def test_the_hook_is_called_once_in_a_run(of, monkeypatch):
    stopped = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: stopped.append(sys._getframe(1)))

    def f(x):
        y = x * x
        breakpoint()  # noqa: T100  (it is what is tested)
        return np.sum(y)

    made = of(f)
    if of in (fwdad.grad, fwdad.jacfwd):
        made(np.ones(2))
    (frame,) = stopped
    assert (frame.f_code.co_filename, frame.f_code.co_name) == (__file__, "f")
