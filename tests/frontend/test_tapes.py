"""Tapes are functions: called, differentiated, compiled, called in traced functions, pickled."""

import copy
import importlib
import json
import os
import pathlib
import pickle
import subprocess
import sys
import threading
import types

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import MissingRuleError, UnpicklableTapeError, UntraceableError
from fwdad.frontend.arguments import Flattened
from fwdad.frontend.trace import trace_flat
from tests.frontend import taped_programs as programs
from tests.frontend.taped_programs import OTHERS, SCALAR, Model, X, results
from tests.tiers import every

ROOT = pathlib.Path(fwdad.__file__).parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}


def made(name):
    args = SCALAR.get(name) or OTHERS[name]
    return fwdad.trace(getattr(programs, name), *copy.deepcopy(args))


def loaded(tape):
    return pickle.loads(pickle.dumps(tape))


@pytest.mark.every(5)
@pytest.mark.parametrize("name", [*SCALAR, *OTHERS])
def test_as_its_function(name):
    tape = made(name)
    of_tape = results(name, tape)
    for key, expected in results(name, getattr(programs, name)).items():
        assert_allclose(of_tape[key], expected, rtol=1e-12, atol=1e-14, err_msg=key)
    again = loaded(tape)
    assert str(again) == str(tape)
    assert results(name, again) == of_tape  # to the last bit


SOURCE = """
import json, pickle, sys
from tests.frontend.taped_programs import results
found = {name: results(name, tape) for name, tape in pickle.load(sys.stdin.buffer).items()}
print(json.dumps(found))
"""


@pytest.mark.parametrize(
    "names",
    every(2, [["from_outside", "of_list", "grows"], [*SCALAR, *OTHERS]]),
    ids=["few", "all"],
)
def test_in_another_process(names):
    tapes = {name: made(name) for name in names}
    run = subprocess.run([sys.executable, "-c", SOURCE], input=pickle.dumps(tapes), check=True,
                         capture_output=True, env=ENVIRONMENT, cwd=ROOT)  # fmt: skip
    here = {name: results(name, tape) for name, tape in tapes.items()}
    assert json.loads(run.stdout) == here


SCRIPT = """
import multiprocessing
import numpy as np
import fwdad

SCALE = 2.0

class Model:
    k = 3.0

    def __call__(self, x):
        return self.k * np.sum(np.sin(x) * SCALE)

MODEL = Model()

def f(x):
    return MODEL(x) ** 2

def work(tape):
    x = np.array([0.1, 0.2])
    return fwdad.grad(tape)(x).tolist()

if __name__ == "__main__":
    tape = fwdad.trace(f, np.ones(2))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(work, [tape]) == [work(f)]
"""


def test_of_a_script_in_a_pool(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    subprocess.run([sys.executable, script], check=True, env=ENVIRONMENT)


@pytest.mark.parametrize("name", ["of_point", "loop", "writes"])
def test_arguments_stay(name):
    args = copy.deepcopy(SCALAR[name])
    tape = loaded(made(name))
    for derive in (fwdad.grad, fwdad.jacrev):
        derive(tape)(*args)
    assert repr(args) == repr(SCALAR[name])


def test_part_of_a_traced_function():
    tape = loaded(made("loop"))

    def both(x, y):
        return tape(x) * tape(y * 2.0)[()] + tape(x[1:])

    def plain(x, y):
        return programs.loop(x) * programs.loop(y * 2.0) + programs.loop(x[1:])

    y = np.linspace(0.1, 0.5, 5)
    for derive in (fwdad.jit, fwdad.grad, fwdad.hessian, lambda f: fwdad.jit(fwdad.grad(f))):
        assert_allclose(derive(both)(X, y), derive(plain)(X, y), rtol=1e-13)


def test_lengths_are_checked_at_run_time():
    tape = fwdad.trace(lambda a, b: np.sum(a * b), np.ones(3), np.ones(3))
    alone = fwdad.trace(lambda a: a / np.sum(a), np.ones(3))

    def cut(x, y):
        return tape(x[x > 0], y[y > 0])

    compiled = fwdad.jit(cut)
    assert compiled(np.array([1.0, -1.0, 2.0]), np.array([3.0, 4.0, -1.0])) == 11.0
    with pytest.raises(TypeError, match="was traced for arguments of other types, lengths"):
        compiled(np.array([1.0, -1.0, -2.0]), np.array([3.0, 4.0, -1.0]))
    with pytest.raises(TypeError, match="was traced for arguments of other types, lengths"):
        fwdad.jit(lambda x: alone(x[x > 0]))(np.array([1.0, -1.0]))


@pytest.mark.parametrize("derive", [fwdad.jit, fwdad.grad, fwdad.jacfwd])
def test_other_arguments(derive):
    with pytest.raises(TypeError, match="Trace the function again"):
        derive(made("loop"))(np.ones((2, 2)))


def test_copies_are_the_tape():
    tape = made("loop")
    assert copy.copy(tape) is tape
    assert copy.deepcopy([tape])[0] is tape


def test_under_another_pickle():
    f = fwdad.grad(loaded(made("of_object")))
    assert_array_equal(pickle.loads(pickle.dumps(f))(X), f(X))
    compiled = fwdad.jit(made("of_object"))
    assert_array_equal(pickle.loads(pickle.dumps(compiled))(X), compiled(X))


def fills(d):
    d["b"] = d["a"] * 2.0
    d["a"][0] = 5.0
    return np.sum(d["b"])


@pytest.mark.parametrize("make", [fwdad.jit, lambda f: fwdad.trace(f, {"a": X.copy()})])
@pytest.mark.parametrize("derive", [fwdad.grad, fwdad.jacfwd, fwdad.hessian])
@pytest.mark.parametrize("around", [lambda f: f, programs.untraceable])
def test_changed_containers(make, derive, around):
    def outer(f):
        def call(x):
            d = {"a": x * 1.0}
            return f(d) * np.sum(d["b"] * d["a"])

        return around(call)

    assert_allclose(derive(outer(make(fills)))(X), derive(outer(fills))(X), rtol=1e-13)


def shifts(x, out):
    out[:] = np.sin(x) * out
    out[1:] += x[:-1]


def test_arguments_that_share_memory():
    tape = fwdad.trace(shifts, X.copy(), X.copy())

    def overlapping(x):
        y = np.concatenate([x, x])
        tape(y[:3], y[2:5])
        return np.sum(y**2)

    for derive in (fwdad.jit, lambda f: fwdad.jit(fwdad.grad(f))):
        with pytest.raises(UntraceableError, match="two of its arguments may share memory"):
            derive(overlapping)(X)
    with pytest.raises(TypeError, match="two of its arrays share memory"):
        fwdad.grad(overlapping)(X)


def test_in_a_loop():
    def outer(f):
        def call(x):
            y, total = x * 1.0, 0.0
            for _ in range(3):
                f(x, y)
                total = total + np.sum(y)
            return total

        return call

    tape = fwdad.trace(shifts, X.copy(), X.copy())
    for derive in (fwdad.jit, fwdad.grad, fwdad.hessian):
        assert_allclose(derive(outer(tape))(X), derive(outer(shifts))(X), rtol=1e-12)


# -- what it reads from outside


def test_a_module_is_read_where_it_is_loaded(monkeypatch):
    tape = loaded(made("from_outside"))
    monkeypatch.setattr(programs, "SCALE", 5.0)
    monkeypatch.setattr(programs, "TABLE", np.array([1.0, 1.0, 2.0]))
    assert_allclose(tape(X), programs.from_outside(X), rtol=1e-14)
    programs.PARAMETERS[0], kept = 4.0, programs.PARAMETERS[0]
    try:
        assert_allclose(tape(X), programs.from_outside(X), rtol=1e-14)
    finally:
        programs.PARAMETERS[0] = kept
    monkeypatch.setattr(programs, "helper", lambda x: x)
    with pytest.raises(TypeError, match="reads from outside"):
        tape(X)


def test_an_option_is_guarded(monkeypatch):
    tape = loaded(made("by_option"))
    monkeypatch.setitem(programs.OPTIONS, "mode", "other")
    with pytest.raises(TypeError, match="reads from outside"):
        tape(X)
    with pytest.raises(TypeError, match="reads from outside"):
        fwdad.grad(tape)(X)


def test_another_function_in_the_other_process(monkeypatch):
    text = pickle.dumps(made("from_outside"))
    monkeypatch.setattr(programs, "helper", lambda x: np.cos(x) * programs.SCALE)
    tape = pickle.loads(text)
    with pytest.raises(TypeError, match="reads from outside"):
        tape(X)


def test_other_code_in_the_other_process(monkeypatch):
    text = pickle.dumps(made("from_outside"))
    other = (lambda x: np.cos(x) * SCALE).__code__.replace(co_name="helper")  # noqa: F821
    monkeypatch.setattr(programs.helper, "__code__", other)
    with pytest.raises(TypeError, match="reads from outside"):
        pickle.loads(text)(X)


IMPORTS = """
def f(x):
    from . import rates
    from .rates import RATE
    try:
        import outside_imports.missing
    except ImportError:
        return x * (rates.RATE + RATE)
    return x
"""


def test_modules_that_a_program_imports(tmp_path, monkeypatch):
    package = tmp_path / "outside_imports"
    package.mkdir()
    for name, text in {"__init__": "", "rates": "RATE = 2.0", "programs": IMPORTS}.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    programs = importlib.import_module("outside_imports.programs")
    tape = fwdad.trace(programs.f, 1.0)
    text = pickle.dumps(tape)
    del sys.modules["outside_imports.rates"]
    assert pickle.loads(text)(3.0) == 12.0  # it is imported again
    sys.modules["outside_imports.missing"] = types.ModuleType("outside_imports.missing")
    for stale in (tape, pickle.loads(text)):
        with pytest.raises(TypeError, match="reads from outside"):
            stale(3.0)
    for name in [name for name in sys.modules if name.startswith("outside_imports")]:
        del sys.modules[name]


def test_a_tape_that_does_not_hold_any_more(monkeypatch):
    tape = made("from_outside")
    monkeypatch.setattr(programs, "helper", lambda x: x)
    with pytest.raises(UnpicklableTapeError, match="a function that it calls has been replaced"):
        pickle.dumps(tape)


def test_a_closure_is_copied():
    weights = np.array([1.0, 2.0, 3.0])
    factor = 2.0

    def inner(x):
        return np.sum(weights * x) * factor

    tape = fwdad.trace(lambda x: inner(x) ** 2, X)
    again = loaded(tape)
    expected = tape(X)
    weights[0] = 100.0
    factor = 5.0
    assert again(X) == expected
    assert tape(X) == inner(X) ** 2 != expected
    assert_allclose(fwdad.grad(again)(X), 2.0 * 2.0 * np.sqrt(expected) * np.array([1.0, 2.0, 3.0]))


def test_an_object_goes_along():
    model = Model()
    tape = fwdad.trace(lambda x: model(x), X)
    again, own = pickle.loads(pickle.dumps((tape, model)))
    assert again(X) == model(X)
    own.k = 7.0
    assert again(X) == own(X) != model(X)
    own.squared = False
    with pytest.raises(TypeError, match="reads from outside"):
        again(X)


# -- what cannot be pickled


class Locked(Model):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()


def test_names_what_cannot_be_pickled():
    locked = Locked()
    tape = fwdad.trace(lambda x: locked(x), X)
    with pytest.raises(UnpicklableTapeError, match=r"it reads a Locked .*lock"):
        pickle.dumps(tape)
    assert tape(X) == locked(X)


def test_a_local_function_with_a_rule(monkeypatch):
    def own(x):
        return np.sin(x)

    @fwdad.frule(own)
    def own_frule(primals, tangents):
        return np.sin(primals[0]), 3.0 * tangents[0]

    tape = fwdad.trace(lambda x: np.sum(own(x)), X)
    with monkeypatch.context() as patch:  # where it is imported, it is taken to be what pickles
        patch.delitem(sys.modules, "cloudpickle", raising=False)
        with pytest.raises(pickle.PicklingError, match=r"it calls .*own.*top level of a module"):
            pickle.dumps(tape)
    cloudpickle = pytest.importorskip("cloudpickle")
    again = pickle.loads(cloudpickle.dumps(fwdad.trace(lambda x: np.sum(x * 2.0), X)))
    assert again(X) == 2.0 * np.sum(X)
    with pytest.raises(MissingRuleError, match=r"unpickled without the rule of .*own"):
        pickle.loads(cloudpickle.dumps(tape))


def test_another_version(monkeypatch):
    text = pickle.dumps(made("loop"))
    monkeypatch.setattr("fwdad.frontend.pickled_tapes.version", lambda: "0.0.0")
    with pytest.raises(UnpicklableTapeError, match=r"this is fwdad 0\.0\.0.*trace the function"):
        pickle.loads(text)


# -- ways, and calls that Python makes


def followed(f, *args):
    return trace_flat(f, Flattened(args, {}), follows=True)


def two_ways(x):
    return [np.sum(x)] if x[0] > 0 else (np.sum(x), 1.0)


@pytest.mark.parametrize("again", [lambda tape: tape, loaded])
def test_another_way(again):
    tape = again(followed(two_ways, X))
    assert tape(X) == [np.sum(X)]
    compiled = fwdad.jit(tape)
    assert compiled(X) == [np.sum(X)]
    for run in (tape, compiled, fwdad.jit(lambda x: tape(x)[0])):
        with pytest.raises(TypeError, match="goes another way"):
            run(-X)


def root(x):
    from scipy.optimize import brentq

    return brentq(lambda v: v**3 - x[0] - v * programs.SCALE, 0.0, 5.0)


def test_a_call_of_a_package():
    pytest.importorskip("scipy")
    tape = followed(root, X)
    again = loaded(tape)
    assert again(X) == tape(X)
    assert_allclose(tape(X), root(X))
    expected = fwdad.grad(root)(X)
    assert_allclose(fwdad.grad(again)(X), expected)
    assert_allclose(fwdad.jit(fwdad.grad(again))(X), expected)


def test_a_list_that_grows_inside():
    tape = made("grows")

    def f(x):
        return tape(x)[0] * sum(tape(x))

    assert fwdad.jit(f)(X) == f(X)
    expected = np.sum(X**2) * 2 * X * np.eye(len(X))[0] + X[0] ** 2 * 2 * X
    assert_allclose(fwdad.jit(fwdad.grad(f))(X), expected)
