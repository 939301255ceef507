"""Programs run under a derivative as deep as they run in Python, and no deeper than the stack."""

import contextlib
import functools
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.eager_reverse.run import gradient
from fwdad.errors import UntraceableError

RATE = 1.001


def function(x, n):
    return x * x if n == 0 else function(x * RATE, n - 1)


def ends_on_a_value(x, n):
    if x > 1e6 or n == 0:
        return x * x
    return ends_on_a_value(x * RATE, n - 1)


class Node:
    """A list of nodes, each of which asks the next one."""

    def __init__(self, n):
        self.n = n

    def method(self, x):
        return x * x if self.n == 0 else Node(self.n - 1).method(x * RATE)

    @classmethod
    def of_class(cls, x, n):
        return x * x if n == 0 else cls.of_class(x * RATE, n - 1)

    def __add__(self, x):
        return x * x if self.n == 0 else Node(self.n - 1) + x * RATE

    def __getitem__(self, x):
        return x * x if self.n == 0 else Node(self.n - 1)[x * RATE]

    def __call__(self, x):
        return x * x if self.n == 0 else Node(self.n - 1)(x * RATE)


class Derived(Node):
    def method(self, x):
        return x * x if self.n == 0 else super().method(x)


class Attribute:
    def __init__(self, x, n):
        self.x, self.n = x, n

    @property
    def value(self):
        return self.x * self.x if self.n == 0 else Attribute(self.x * RATE, self.n - 1).value

    @property
    def by_name(self):
        if self.n == 0:
            return self.x * self.x
        return getattr(Attribute(self.x * RATE, self.n - 1), "by_name")  # noqa: B009


def decorated(f):
    @functools.wraps(f)
    def inner(*args):
        return f(*args)

    return inner


@decorated
def wrapped(x, n):
    return x * x if n == 0 else wrapped(x * RATE, n - 1)


def partial(x, n):
    return x * x if n == 0 else functools.partial(partial, x * RATE)(n - 1)


def mapped(x, n):
    return x * x if n == 0 else next(map(mapped, [x * RATE], [n - 1]))


def comprehension(x, n):
    return x * x if n == 0 else sum([comprehension(x * RATE, n - 1) for _ in range(1)])


@contextlib.contextmanager
def context(x, n):
    if n == 0:
        yield x * x
    else:
        with context(x * RATE, n - 1) as y:
            yield y


def managed(x, n):
    with context(x, n) as y:
        return y


def arrays(x, n):
    return (x * x).sum() if n == 0 else arrays(x * RATE, n - 1)


KINDS = {
    "function": function,
    "ends_on_a_value": ends_on_a_value,
    "method": lambda x, n: Node(n).method(x),
    "of_class": Node.of_class,
    "inherited": lambda x, n: Derived(n).method(x),
    "operator": lambda x, n: Node(n) + x,
    "subscript": lambda x, n: Node(n)[x],
    "called": lambda x, n: Node(n)(x),
    "property": lambda x, n: Attribute(x, n).value,
    "by_name": lambda x, n: Attribute(x, n).by_name,
    "wrapped": wrapped,
    "partial": partial,
    "mapped": mapped,
    "comprehension": comprehension,
    "managed": managed,
}
MODES = {
    "jvp": lambda f, x, n: fwdad.jvp(f, x, np.ones_like(x), args=(n,))[1],
    "forward": lambda f, x, n: fwdad.jacobian(f, x, args=(n,), mode="forward"),
    "reverse": lambda f, x, n: fwdad.jacobian(f, x, args=(n,), mode="reverse"),
    "grad": lambda f, x, n: fwdad.grad(f)(x, n),
    "vjp": lambda f, x, n: fwdad.vjp(f, x, args=(n,))[1](1.0),
    "recorded": lambda f, x, n: gradient(lambda x: f(x, n), x),
    "jit": lambda f, x, n: fwdad.jit(fwdad.grad(f), backend="numpy")(x, n),
}
SECOND = {
    "hessian": lambda f, x, n: fwdad.hessian(f, x, args=(n,)),
    "forward over forward": lambda f, x, n: fwdad.jacobian(
        lambda x: fwdad.jacobian(f, x, args=(n,), mode="forward"), x, mode="forward"
    ),
    "reverse over reverse": lambda f, x, n: fwdad.grad(lambda x: fwdad.grad(f)(x, n))(x),
    "forward over reverse": lambda f, x, n: fwdad.jvp(lambda x: fwdad.grad(f)(x, n), x, 1.0)[1],
}


def deepest(f, x):
    """The deepest recursion of f that Python's limit allows here."""
    low, high = 1, sys.getrecursionlimit()
    while high - low > 1:
        middle = (low + high) // 2
        try:
            f(x, middle)
        except RecursionError:
            high = middle
        else:
            low = middle
    return low - 5  # the calls around it here and below


OBJECTS = {"method", "inherited", "operator", "subscript", "called", "property", "by_name"}
"""Whose recursion makes objects: no tape can hold them."""


@pytest.mark.every(11, first=1)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_as_deep_as_python(kind, mode):
    n = deepest(KINDS[kind], 0.3)
    assert n > 150
    if mode == "jit" and kind in OBJECTS | {"managed"}:
        reasons = "nested too deeply|how far a generator|an iterator is passed to"
        with pytest.raises(UntraceableError, match=reasons):
            MODES[mode](KINDS[kind], 0.3, n)
        return
    assert_allclose(MODES[mode](KINDS[kind], 0.3, n), 2 * 0.3 * RATE ** (2 * n), rtol=1e-10)


@pytest.mark.slow_cases("managed-hessian", "method-hessian", "property-reverse over reverse")
@pytest.mark.parametrize("mode", SECOND)
@pytest.mark.parametrize("kind", ["function", "ends_on_a_value", "method", "property", "managed"])
def test_second_derivatives_as_deep_as_python(kind, mode):
    n = deepest(KINDS[kind], 0.3)
    assert_allclose(SECOND[mode](KINDS[kind], 0.3, n), 2 * RATE ** (2 * n), rtol=1e-10)


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_arrays_as_deep_as_python(width, mode):
    x = np.array([0.3, -0.5, 0.7, 1.1])
    n = deepest(arrays, x)
    row = fwdad.jacobian(arrays, x, args=(n,), mode=mode, chunk=width)
    assert_allclose(row, 2 * x * RATE ** (2 * n), rtol=1e-10)


def test_known_depth_is_traced_where_the_structure_ends_it():
    def product(x, factors):
        return x if not factors else product(x * factors[0], factors[1:])

    factors = (RATE,) * 120
    assert_allclose(fwdad.trace(lambda x: product(x, factors), 0.3)(0.3), 0.3 * RATE**120)


def test_tuples_that_nest_deeply_are_looked_through_once():
    def innermost(x, nested):
        return x * nested if isinstance(nested, float) else innermost(x, nested[0]) * RATE

    nested = 2.0
    for _ in range(60):
        nested = (nested,)
    assert_allclose(fwdad.trace(lambda x: innermost(x, nested), 0.3)(0.3), 0.6 * RATE**60)


def test_recursion_through_functions_that_python_calls():
    def reduced(x, n):
        return x * x if n == 0 else functools.reduce(lambda a, b: reduced(a * b, n - 1), [x, RATE])

    expected = 2 * 0.3 * RATE**80
    assert_allclose(fwdad.jit(fwdad.grad(reduced), backend="numpy")(0.3, 40), expected)


def test_recursion_with_kept_results():
    @functools.lru_cache(None)
    def fibonacci(n):
        return 1.0 if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    assert fwdad.jit(fwdad.grad(lambda x, n: x * fibonacci(n)), backend="numpy")(0.3, 9) == 55.0


def ends_in_an_error(derivative, kind):
    """Whether a recursion without end raises in the user's own lines, and the limit is restored."""
    limit = sys.getrecursionlimit()
    try:
        derivative(KINDS[kind], 0.3, 10**9)
    except RecursionError as error:
        frames = traceback.extract_tb(error.__traceback__)
        package = str(Path(fwdad.__file__).parent)
        inside = any(frame.filename.startswith(package) for frame in frames)
        named = any(frame.filename == __file__ for frame in frames[-10:])
        return named and not inside and sys.getrecursionlimit() == limit
    return False


def without_end():
    """Every kind without an end, here or in a thread of its own; prints those that are right."""
    for k, kind in enumerate(KINDS):
        found = []

        def attempt(kind=kind, found=found):
            found.append(ends_in_an_error(MODES["grad" if kind == "function" else "jvp"], kind))

        if k % 2:
            thread = threading.Thread(target=attempt)
            thread.start()
            thread.join()
        else:
            attempt()
        if found == [True]:
            print(kind)


def test_recursion_without_an_end_never_ends_the_process():
    command = "from tests.eager.test_recursion_depth import without_end; without_end()"
    ran = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == [*KINDS]
