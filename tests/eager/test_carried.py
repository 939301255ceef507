"""Pickles of derivatives carry the source of f: they are taken where there is none of it."""

import copy
import gc
import importlib
import linecache
import math
import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.eager.lifting import carried
from fwdad.eager.lifting.reached import sources_of
from tests.tiers import every

ROOT = pathlib.Path(fwdad.__file__).parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
X = np.array([0.5, 0.7])

# `math` and `float` refuse duals: only with its source has a function here a derivative
FUNCTIONS = """
import functools, math, sys
import numpy as np
import fwdad


def helper(v):
    return math.exp(v[0])


def plain(x):
    return helper(x) * float(x[1])


def scaled(factor):
    def closure(x, *, call=[plain]):
        return factor * call[0](x) + (lambda t: math.cos(t))(x[0])

    return closure


class Base:
    def term(self, x):
        return math.sin(x[0])


class Model(Base):
    def __init__(self, factor):
        self.factor = factor
        self.parts = {"plain": [plain]}

    @property
    def double(self):
        return self.factor * float(2)

    @staticmethod
    def cube(v):
        return math.pow(v, 3)

    def loss(self, x):
        return self.double * self.parts["plain"][0](x) + self.cube(x[1]) + self.term(x)

    def __call__(self, x):
        return self.loss(x)


def wrapped(f):
    @functools.wraps(f)
    def wrapper(x):
        return 3 * f(x)

    return wrapper


@wrapped
def decorated(x):
    return math.sin(x[0]) * float(x[1])


def itself(x, n=3):
    return math.sin(x[0]) if n == 0 else float(x[1]) * itself(x, n - 1)


checkpointed = fwdad.checkpoint(plain)
inner = fwdad.grad(plain)


def calls_a_gradient(x):
    return float(inner(x)[0]) + checkpointed(x)


one, two = lambda x: math.sin(x[0]), lambda x: math.cos(x[0]) * float(x[1])

FUNCTIONS = {
    "plain": plain, "closure": scaled(2.0), "method": Model(1.5).loss, "object": Model(1.5),
    "decorated": decorated, "itself": itself, "partial": functools.partial(plain),
    "a gradient inside": calls_a_gradient, "lambdas": two,
}
"""

DUMP = """
import cloudpickle, pickle
made = {}
for name, f in FUNCTIONS.items():
    made[name] = (
        f, fwdad.grad(f), fwdad.jit(fwdad.grad(f), backend="numpy"), fwdad.jacfwd(f),
        fwdad.grad(fwdad.jit(f, backend="numpy")), fwdad.grad(fwdad.checkpoint(f)),
    )
    for derivative in made[name][1:]:
        assert len(cloudpickle.dumps(derivative)) < 8000
with open(sys.argv[1], "wb") as file:
    file.write(cloudpickle.dumps(made))
"""

LOAD = """
import pickle, sys
import numpy as np
with open(sys.argv[1], "rb") as file:
    made = pickle.load(file)
x = np.array([0.5, 0.7])
for name, (f, *derivatives) in made.items():
    h = 1e-6
    want = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(2)]
    for derivative in derivatives:
        np.testing.assert_allclose(derivative(x), want, rtol=1e-8, err_msg=name)
print("right")
"""


def run(*command, **options):
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True, text=True, check=False, env=ENVIRONMENT, timeout=400, **options,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("program", every(2, ["in a file", "on the command line"]))
def test_functions_of_main(tmp_path, program):
    pytest.importorskip("cloudpickle")
    made = tmp_path / "made.pickle"
    if program == "in a file":
        path = tmp_path / "program.py"
        path.write_text(FUNCTIONS + DUMP)
        run(path, made)
        path.unlink()
    else:
        run("-c", FUNCTIONS + DUMP, made)
    assert run("-c", LOAD, made) == "right\n"


JOBLIB = """
import joblib
xs = [np.array([0.1 * k, 0.2 * k]) for k in range(1, 4)]
want = [[math.exp(x[0]) * x[1], math.exp(x[0])] for x in xs]
def work(x):
    return inner(x)
def takes_one(x):  # nothing of ours is pickled, but the file is on the worker's machine
    return fwdad.grad(plain)(x)
if __name__ == "__main__":
    call = [inner, fwdad.jacfwd(plain), fwdad.jit(inner, backend="numpy"), work, takes_one]
    with joblib.Parallel(n_jobs=2) as parallel:
        for f in call:
            np.testing.assert_allclose(parallel(joblib.delayed(f)(x) for x in xs), want)
    print("right")
"""


@pytest.mark.slow  # see test_workers_that_are_spawned
def test_workers_of_joblib(tmp_path):
    pytest.importorskip("joblib")
    path = tmp_path / "program.py"
    path.write_text(FUNCTIONS + JOBLIB)
    assert run(path) == "right\n"


SPAWN = """
import multiprocessing
xs = [np.array([0.1 * k, 0.2 * k]) for k in range(1, 4)]
want = [[math.exp(x[0]) * x[1], math.exp(x[0])] for x in xs]
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for f in (inner, fwdad.jit(inner, backend="numpy"), fwdad.jacfwd(plain)):
            np.testing.assert_allclose(pool.map(f, xs), want)
        pool.map(fwdad.grad(Model(1.5).loss), xs)
    print("right")
"""


def test_workers_that_are_spawned(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(FUNCTIONS + SPAWN)
    assert run(path) == "right\n"


def test_a_function_alone_is_reported(tmp_path):
    """Nothing of ours is in its pickle: the error says what to do."""
    pytest.importorskip("cloudpickle")
    made = tmp_path / "made.pickle"
    dump = "import cloudpickle; open(sys.argv[1], 'wb').write(cloudpickle.dumps(plain))"
    run("-c", FUNCTIONS + dump, made)
    load = """
import fwdad, pickle, sys, numpy as np
f = pickle.load(open(sys.argv[1], "rb"))
try:
    fwdad.grad(f)(np.ones(2))
except fwdad.errors.DualLeakError as error:
    print(error.msg)
"""
    said = run("-c", load, made)
    wanted = "plain has no source that can be read: it came in a pickle, which does not "
    assert said.startswith(wanted + "contain its source. Make the derivative where f is")


RULE = """
import fwdad, math, sys, cloudpickle
def bump(v):
    return v * v
@fwdad.frule(bump)
def bump_frule(primals, tangents):
    return bump(primals[0]), 7.0 * tangents[0]
def f(x):
    return bump(x[0]) * x[1]
open(sys.argv[1], "wb").write(cloudpickle.dumps((fwdad.grad(f), fwdad.jacfwd(f))))
"""


def test_a_rule_that_has_not_come(tmp_path):
    """The derivative through the source is another one: it must not be taken in silence."""
    pytest.importorskip("cloudpickle")
    made = tmp_path / "made.pickle"
    run("-c", RULE, made)
    load = """
import fwdad, pickle, sys, numpy as np
for derivative in pickle.load(open(sys.argv[1], "rb")):
    try:
        print(derivative(np.ones(2)))
    except fwdad.errors.MissingRuleError as error:
        print(error.msg)
"""
    said = run("-c", load, made).splitlines()
    assert len(said) == 2
    assert all(line.startswith("bump was unpickled without its rule") for line in said)


# -- in one process


def from_text(text, name):
    """A function of ``__main__`` whose source linecache knows."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = {"__name__": "__main__"}
    exec(compile(text, name, "exec"), namespace)
    return namespace["f"]


def lost(derivative, name):
    """A derivative that was pickled and is unpickled where nobody knows its source."""
    cloudpickle = pytest.importorskip("cloudpickle")
    made = cloudpickle.dumps(derivative)
    linecache.cache.pop(name, None)
    return pickle.loads(made)


SINE = "import math\n\ndef f(x):\n    return math.sin(x[0]) * float(x[1])\n"


def test_tracebacks_show_the_lines():
    name = "<a cell of another process>"
    text = "import math\n\ndef f(x):\n    y = math.sin(x[0])\n    return int(x[1]) * y\n"
    derivative = lost(fwdad.grad(from_text(text, name)), name)
    with pytest.raises(fwdad.errors.DualLeakError) as caught:
        derivative(X)
    assert (caught.value.filename, caught.value.lineno) == (name, 5)
    assert caught.value.text == "    return int(x[1]) * y\n"
    assert linecache.getline(name, 4) == "    y = math.sin(x[0])\n"


def test_another_file_of_the_same_name(tmp_path):
    """On this machine; tracebacks show the lines that came."""
    path = tmp_path / "same.py"
    derivative = lost(fwdad.grad(from_text(SINE.replace("float", "int"), str(path))), str(path))
    path.write_text("# another file\n" * 9)
    with pytest.raises(fwdad.errors.DualLeakError) as caught:
        derivative(X)
    assert caught.value.filename == f"<pickled {path}>"
    assert caught.value.text == "    return math.sin(x[0]) * int(x[1])\n"


@pytest.mark.usefixtures("young_heap")
def test_sources_go_with_their_functions():
    gc.collect()
    held, lines = len(carried._HELD), len(linecache.cache)
    for k in range(3):
        name = f"<cell {k}>"
        derivative = lost(fwdad.grad(from_text(SINE, name)), name)
        assert_allclose(derivative(X), [0.7 * math.cos(0.5), math.sin(0.5)])
        del derivative
    for _ in range(3):  # the last one is held by what has run it last
        gc.collect()
    assert len(carried._HELD) <= held + 1
    assert len(linecache.cache) <= lines + 2


def test_pickled_once_more():
    name = "<pickled twice>"
    again = lost(lost(fwdad.jacfwd(from_text(SINE, name)), name), name)
    assert_allclose(again(X), [0.7 * math.cos(0.5), math.sin(0.5)])


def test_another_function_of_the_same_place():
    """Two texts, one place: the bytecode tells which one it is."""
    name = "<one place>"
    first = lost(fwdad.grad(from_text(SINE, name)), name)
    second = lost(fwdad.grad(from_text(SINE.replace("sin", "cos"), name)), name)
    assert_allclose(first(X), [0.7 * math.cos(0.5), math.sin(0.5)])
    assert_allclose(second(X), [-0.7 * math.sin(0.5), math.cos(0.5)])


def test_nothing_is_read_before_it_is_asked_for(monkeypatch):
    name = "<not read>"
    made = pytest.importorskip("cloudpickle").dumps(fwdad.grad(from_text(SINE, name)))
    monkeypatch.setattr("ast.parse", None)
    monkeypatch.setattr("builtins.compile", None)
    pickle.loads(made)


def test_compiled_code_stays_where_it_is():
    f = from_text(SINE, "<not compiled>")
    jitted = fwdad.jit(fwdad.grad(f), backend="numpy")
    cloudpickle = pytest.importorskip("cloudpickle")
    before = len(cloudpickle.dumps(jitted))
    for k in range(3):
        jitted(np.ones(2 + k))
    assert jitted.traces > 0
    assert len(cloudpickle.dumps(jitted)) == before
    assert fwdad.cache_info(pickle.loads(cloudpickle.dumps(jitted))).traces == 0


@pytest.mark.parametrize("make", [fwdad.grad, fwdad.jit, fwdad.jacfwd, fwdad.checkpoint])
def test_what_is_imported_there_is_a_name(make, tmp_path, monkeypatch):
    (tmp_path / "importable.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("importable")
    assert sources_of(module.plain) == ()
    assert len(pickle.dumps(make(module.plain))) < 250
    assert pickle.loads(pickle.dumps(make(module.plain))).__wrapped__ is module.plain


def test_closures_of_modules_carry_their_lines_alone(tmp_path, monkeypatch):
    (tmp_path / "long_module.py").write_text("# a line\n" * 5000 + FUNCTIONS)
    monkeypatch.syspath_prepend(tmp_path)
    closure = importlib.import_module("long_module").scaled(2.0)
    (text,) = sources_of(closure)
    assert sum(len(run) for _, run in text.runs) < 300  # the factory and the imports


def test_modules_that_are_pickled_by_value(tmp_path, monkeypatch):
    cloudpickle = pytest.importorskip("cloudpickle")
    (tmp_path / "by_value.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("by_value")
    cloudpickle.register_pickle_by_value(module)
    try:
        (text,) = sources_of(module.plain)
        assert {name for _, name in text.keys} == {"plain", "helper"}
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def test_copies():
    derivative = fwdad.grad(from_text(SINE, "<copied>"))
    assert_allclose(copy.deepcopy(derivative)(X), derivative(X))
