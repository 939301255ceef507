"""Python's features, whole models and SciPy's own Python, at every chunk size."""

import collections
import importlib
import linecache
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.cases.check import check_jacobian, check_lanes, with_widths
from tests.cases.models import MODELS, TIMES
from tests.cases.numerics import NUMERICS
from tests.cases.objects import OBJECTS
from tests.cases.programs import PROGRAMS
from tests.differences import central_differences

ALL = PROGRAMS + OBJECTS + NUMERICS + MODELS


@pytest.mark.parametrize(("program", "chunk"), with_widths(ALL))
def test_jacobian(program, chunk):
    check_jacobian(program, chunk)


@pytest.mark.slow_cases("fit_with_bounds-2", "fit_with_bounds-None", "two_body_leapfrog-3")
@pytest.mark.parametrize("chunk", [2, 3, None])
@pytest.mark.parametrize("program", ALL, ids=str)
def test_lanes(program, rng, chunk):
    check_lanes(program, rng, chunk)


# -- structured inputs and outputs


class Pair(NamedTuple):
    left: np.ndarray
    right: float


@dataclass
class Model:
    rates: np.ndarray
    offset: float
    steps: int = 3


def simulate(model):
    value = model.offset
    for _ in range(model.steps):
        value = value + np.sum(model.rates * value) * 0.1
    return value


MODEL = Model(np.array([0.3, 0.5]), 2.0)


@pytest.mark.parametrize("chunk", [1, 2, 3, None])
def test_dataclass_goes_in(chunk):
    gradient = fwdad.grad(simulate, chunk=chunk)(MODEL)
    growth = 1 + 0.1 * 0.8
    assert isinstance(gradient, Model)
    assert_allclose(gradient.rates, [2.0 * 3 * 0.1 * growth**2] * 2, rtol=1e-14)
    assert gradient.offset == pytest.approx(growth**3, rel=1e-14)
    assert gradient.steps is fwdad.NoTangent
    assert_array_equal(MODEL.rates, [0.3, 0.5])


@pytest.mark.parametrize("chunk", [1, 2, 3, None])
def test_nested_containers_go_in_and_out(chunk):
    """A Jacobian has y's structure, with x's in each leaf of it, and their shapes joined."""

    def f(parameters):
        pair, (scale, *_) = parameters["pair"], parameters["more"]
        out = Pair(pair.left * scale, pair.right**2)
        return {"out": out, "list": [np.outer(pair.left, pair.left)], "text": "none"}

    x = {"pair": Pair(np.array([1.0, 2.0, 3.0]), 0.5), "more": (4.0, 7)}
    y, jacobian = fwdad.value_and_jacobian(f, x, chunk=chunk)
    assert isinstance(y["out"], Pair)
    assert_array_equal(y["list"][0], np.outer([1.0, 2, 3], [1.0, 2, 3]))
    assert y["text"] == "none"
    left = jacobian["out"].left
    assert_array_equal(left["pair"].left, 4 * np.eye(3))
    assert_array_equal(left["pair"].right, np.zeros(3))
    assert_array_equal(left["more"][0], [1.0, 2.0, 3.0])
    assert left["more"][1] is fwdad.NoTangent
    assert jacobian["out"].right["pair"].right == 1.0
    assert_array_equal(jacobian["out"].right["pair"].left, np.zeros(3))
    product = jacobian["list"][0]["pair"].left
    v = np.array([1.0, 2.0, 3.0])
    expected = np.einsum("ik,j->ijk", np.eye(3), v) + np.einsum("jk,i->ijk", np.eye(3), v)
    assert_array_equal(product, expected)
    assert x["more"] == (4.0, 7)


@pytest.mark.parametrize("chunk", [1, 2, 3, None])
def test_directions_for_a_container(chunk):
    x = (np.array([1.0, 2.0]), {"b": 3.0})
    v = (np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), {"b": np.array([0.0, 2.0, 1.0])})
    y, y_dot = fwdad.jvp(lambda p: p[0] * p[1]["b"], x, v, chunk=chunk)
    assert_array_equal(y, [3.0, 6.0])
    assert_array_equal(y_dot, [[3.0, 0.0], [2.0, 3.0 + 4.0], [3.0 + 1.0, 3.0 + 2.0]])


@pytest.mark.parametrize("chunk", [1, 2, 3, None])
def test_ordered_and_default_dicts_keep_their_type(chunk):
    x = collections.OrderedDict(b=np.array([1.0, 2.0]), a=3.0)
    gradient = fwdad.grad(lambda p: np.sum(p["b"]) * p["a"], chunk=chunk)(x)
    assert type(gradient) is collections.OrderedDict
    assert list(gradient) == ["b", "a"]
    assert_array_equal(gradient["b"], [3.0, 3.0])
    assert gradient["a"] == 3.0


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_stacked_list_is_one_matrix(chunk):
    def f(t, y):
        return [y[1], -y[0] * t]

    jacobian = fwdad.jacobian(
        f, 2.0, args=(np.array([1.0, 3.0]),), argnums=1, stack=True, chunk=chunk
    )
    assert_array_equal(jacobian, [[0.0, 1.0], [-2.0, 0.0]])


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_several_arguments_and_keywords(chunk):
    def f(a, b, c, *, scale):
        return a * b * scale + c

    a, b = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    by_a, by_c = fwdad.jacobian(
        f, a, args=(b, 2.0), kwargs={"scale": 10.0}, argnums=(0, 2), chunk=chunk
    )
    assert_array_equal(by_a, np.diag(10 * b))
    assert_array_equal(by_c, [1.0, 1.0])
    by_b = fwdad.jacfwd(f, argnums=1, chunk=chunk)(a, b, 2.0, scale=10.0)
    assert_array_equal(by_b, np.diag(10 * a))


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_auxiliary_output_comes_back_plain(chunk):
    def f(x):
        return np.sum(x**2), {"half": x / 2, "n": len(x)}

    x = np.array([1.0, 2.0, 3.0])
    jacobian, aux = fwdad.jacobian(f, x, has_aux=True, chunk=chunk)
    assert_array_equal(jacobian, 2 * x)
    assert aux["n"] == 3
    assert type(aux["half"]) is np.ndarray
    assert_array_equal(aux["half"], x / 2)
    (value, aux), gradient = fwdad.value_and_grad(f, has_aux=True, chunk=chunk)(x)
    assert value == 14.0
    assert_array_equal(aux["half"], x / 2)
    assert_array_equal(gradient, 2 * x)


# -- SciPy's own Python, to the accuracy that its tolerance allows


def lotka_volterra(_t, y, rates):
    prey, predator = y
    return np.array(
        [rates[0] * prey - rates[1] * prey * predator, -rates[2] * predator + prey * predator]
    )


RATES = np.array([1.1, 0.9, 1.3])


def end_state(rates, method, rtol, atol):
    solution = scipy.integrate.solve_ivp(
        lotka_volterra, (0.0, 3.0), [1.2, 0.8], method=method, args=(rates,), rtol=rtol, atol=atol
    )
    return solution.y[:, -1]


@pytest.fixture(scope="module")
def end_state_jacobian():
    """Differences of a tight solution by another method, order 8."""
    return central_differences(lambda r: end_state(r, "DOP853", 1e-13, 1e-14), RATES)


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_solve_ivp_rk45(chunk, end_state_jacobian):
    jacobian = fwdad.jacobian(end_state, RATES, args=("RK45", 1e-9, 1e-11), chunk=chunk)
    assert_allclose(jacobian, end_state_jacobian, rtol=1e-6)


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_solve_ivp_bdf(chunk, end_state_jacobian):
    jacobian = fwdad.jacobian(end_state, RATES, args=("BDF", 1e-6, 1e-9), chunk=chunk)
    scale = np.max(np.abs(end_state_jacobian))
    assert_allclose(jacobian, end_state_jacobian, rtol=1e-5, atol=1e-5 * scale)


def test_solve_ivp_by_its_initial_state():
    def f(y0):
        return scipy.integrate.solve_ivp(
            lotka_volterra, (0.0, 1.0), y0, args=(RATES,), rtol=1e-9, atol=1e-11
        ).y[:, -1]

    y0 = np.array([1.2, 0.8])
    y, jacobian = fwdad.value_and_jacobian(f, y0, chunk=1)
    assert_array_equal(y, f(y0))

    def tight(y0):
        return scipy.integrate.solve_ivp(
            lotka_volterra, (0.0, 1.0), y0, args=(RATES,), method="DOP853", rtol=1e-13, atol=1e-14
        ).y[:, -1]

    assert_allclose(jacobian, central_differences(tight, y0), rtol=1e-6)


def test_least_squares_with_bounds_and_our_jacobian():
    truth = np.array([2.0, 1.1, 0.4])
    data = truth[0] * np.exp(-truth[1] * TIMES) + truth[2]

    def residual(p, data, weight=1.0):
        return weight * (p[0] * np.exp(-p[1] * TIMES) + p[2] - data)

    def jac(p, data, weight=1.0):
        return fwdad.jacobian(residual, p, args=(data,), kwargs={"weight": weight})

    arguments = {"args": (data,), "kwargs": {"weight": 2.0}}
    bounds = ([0.0, 0.0, 0.0], [5.0, 5.0, 0.3])
    fit = scipy.optimize.least_squares(residual, [1.0, 1.0, 0.1], jac, bounds=bounds, **arguments)
    peer = scipy.optimize.least_squares(residual, [1.0, 1.0, 0.1], bounds=bounds, **arguments)
    assert fit.success
    assert fit.active_mask[2] == 1
    assert_allclose(fit.x, peer.x, rtol=1e-6)
    assert fit.nfev <= peer.nfev + 1


# -- where a function comes from


CELL = """
import math
import numpy as np
scale = 2.0
def cell(x):
    return np.sin(x) * scale + math.cos(x[0])
pair = (lambda x: x * 2.0), (lambda x: x * x)
"""


def run_cell(source, name):
    """Run source as a notebook does: the lines are known to `linecache` alone."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace = {"__name__": "__main__"}
    exec(compile(source, name, "exec"), namespace)
    return namespace


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_notebook_cell(chunk):
    namespace = run_cell(CELL, "<ipython-input-7-0123456789ab>")
    x = np.array([0.3, 0.5, 0.7])
    expected = np.diag(2.0 * np.cos(x))
    expected[:, 0] -= np.sin(x[0])
    assert_allclose(fwdad.jacobian(namespace["cell"], x, chunk=chunk), expected, rtol=1e-15)
    assert_array_equal(fwdad.jacobian(namespace["pair"][0], x, chunk=chunk), 2 * np.eye(3))
    assert_array_equal(fwdad.jacobian(namespace["pair"][1], x, chunk=chunk), np.diag(2 * x))
    namespace["scale"] = 5.0  # globals are looked up when it runs
    expected = np.diag(5.0 * np.cos(x))
    expected[:, 0] -= np.sin(x[0])
    assert_allclose(fwdad.jacobian(namespace["cell"], x, chunk=chunk), expected, rtol=1e-15)


def test_redefined_cell_is_the_new_function():
    """The lines under one cell name are the newer function's; the older one is still itself."""
    name, x = "<ipython-input-8-0123456789ab>", np.array([0.3, 0.5])
    old = run_cell("import numpy as np\ndef f(x):\n    return np.sin(x)\n", name)["f"]
    new = run_cell("import numpy as np\ndef f(x):\n    return x * 3.0\n", name)["f"]
    assert_array_equal(fwdad.jacobian(new, x), 3 * np.eye(2))
    assert_allclose(fwdad.jacobian(old, x), np.diag(np.cos(x)), rtol=1e-15)
    newest = run_cell("import numpy as np\ndef f(x):\n    return x * 5.0\n", name)["f"]
    assert_array_equal(fwdad.jacobian(newest, x), 5 * np.eye(2))


SOURCELESS = """
def rosenbrock(x):
    y = np.zeros_like(x)
    total = 0.0
    for i in range(len(x) - 1):
        total = total + 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2
    return total
nested = lambda x: np.sum(np.exp([v * x[0] for v in x][1]) * x)
power = lambda x: x ** 3
class Quadratic:
    def __init__(self, a):
        self.a = a
    def __call__(self, x):
        return x @ self.a @ x
quadratic = Quadratic(np.array([[2.0, 1.0], [0.0, 3.0]]))
"""


@pytest.mark.parametrize("chunk", [1, 2, 3])
@pytest.mark.parametrize("name", ["rosenbrock", "nested", "power", "quadratic"])
def test_exec_without_source(name, chunk):
    """No source anywhere: the function itself runs on duals."""
    namespace = {"np": np}
    exec(SOURCELESS, namespace)
    f, x = namespace[name], np.array([0.3, 0.9])
    y, jacobian = fwdad.value_and_jacobian(f, x, chunk=chunk)
    assert_array_equal(y, f(x))
    assert type(y) is type(f(x))
    assert_allclose(jacobian, central_differences(f, x), rtol=1e-8, atol=1e-10)


def test_sourceless_callee_of_a_function_with_source():
    namespace = {"np": np}
    exec(SOURCELESS, namespace)
    rosenbrock = namespace["rosenbrock"]

    def f(x):
        return rosenbrock(x * 2.0) * x[0]

    x = np.array([0.3, 0.9, -0.4])
    for chunk in (1, 2, 3):
        assert_allclose(
            fwdad.jacobian(f, x, chunk=chunk), central_differences(f, x), rtol=1e-8, atol=1e-9
        )


def test_file_that_changed_on_disk(tmp_path, monkeypatch):
    """The lines under a loaded function are those of another one: never differentiate these."""
    path = tmp_path / "changing_program.py"
    path.write_text("import numpy as np\ndef f(x):\n    return np.sin(x)\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("changing_program")
    path.write_text("import numpy as np\ndef f(x):\n    return x * 3\n")
    linecache.checkcache()
    x = np.array([0.3, 0.9])
    assert_allclose(fwdad.jacobian(module.f, x), np.diag(np.cos(x)), rtol=1e-15)
    os.utime(path, (1, 1))  # another time stamp, so that the stale byte code is not used
    importlib.reload(module)
    assert_array_equal(fwdad.jacobian(module.f, x), 3 * np.eye(2))
    sys.modules.pop("changing_program")


def test_callee_is_looked_up_when_called(tmp_path, monkeypatch):
    def f(x):
        return helper(x)  # noqa: F821 - a global that the test sets

    namespace = f.__globals__
    monkeypatch.setitem(namespace, "helper", lambda x: x * 2.0)
    assert fwdad.derivative(f, 3.0) == 2.0
    monkeypatch.setitem(namespace, "helper", lambda x: x * x)
    assert fwdad.derivative(f, 3.0) == 6.0


def test_program_from_standard_input():
    program = textwrap.dedent("""
        import math, numpy as np, fwdad
        def f(x):
            return np.sin(x) * x
        print(fwdad.derivative(f, 1.5) - (math.sin(1.5) + 1.5 * math.cos(1.5)))
    """)
    done = subprocess.run(
        [sys.executable, "-"],
        input=program,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert abs(float(done.stdout)) < 1e-15


def test_lambda_inside_a_lambda_on_one_line():
    """The inner one is a function of its own: its positions lie inside the outer one's too."""
    x = np.array([1.0, 2.0])
    outer = lambda d: fwdad.jacobian(lambda x: x * d, x)  # noqa: E731
    assert_array_equal(outer(3.0), 3 * np.eye(2))
    no_argument = lambda: fwdad.jacobian(lambda v: v**2, x)  # noqa: E731
    assert_array_equal(no_argument(), np.diag(2 * x))
    three = lambda a: lambda b: lambda c: a * b * c  # noqa: E731
    assert fwdad.derivative(three(2.0)(3.0), 1.0) == 6.0
    assert fwdad.derivative(lambda a: three(a)(a)(a), 2.0) == 12.0
    assert fwdad.derivative(lambda a: (lambda b: (lambda a: a * b)(b))(a * 2.0), 1.0) == 8.0


class Greedy:
    """`self` is captured, not an argument."""

    def __init__(self, scale):
        self.scale = scale

    def method(self, x):
        return self.scale * x**2

    @classmethod
    def of_class(cls, x):
        return cls(3.0).method(x)

    @staticmethod
    def static(x):
        return np.cos(x)

    def __call__(self, x):
        return self.method(x) + self.scale


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_callables_of_all_kinds(chunk):
    x = np.array([0.3, 0.9, 2.0])
    greedy = Greedy(2.0)
    for f, diagonal in [
        (greedy.method, 4 * x),
        (greedy, 4 * x),
        (Greedy.of_class, 6 * x),
        (Greedy.static, -np.sin(x)),
        (greedy.static, -np.sin(x)),
        (Greedy.method.__get__(greedy), 4 * x),
        (np.sin, np.cos(x)),
        (np.vectorize(lambda v: v * v), 2 * x),
        (x.__mul__, x),
    ]:
        assert_allclose(fwdad.jacobian(f, x, chunk=chunk), np.diag(diagonal), rtol=1e-15)
    assert_array_equal(
        fwdad.jacobian(Greedy.method, greedy, args=(x,), argnums=1, chunk=chunk), np.diag(4 * x)
    )
