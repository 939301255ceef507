"""Generated source is kept as long as its function, and no longer."""

import gc
import linecache
import traceback

import numpy as np
import pytest

import fwdad
from fwdad.core import generated_source
from tests.tiers import every

X = np.linspace(0.1, 1.0, 4)


def texts():
    gc.collect()
    generated_source.drop_dead()  # as the next function that is defined does
    known = {*linecache.cache, *generated_source.PLACES, *generated_source._HELD}
    return {name for name in known if name.startswith("<fwdad")}


def cell(k):
    """A program that nobody has seen, as a notebook would have it."""
    text = f"def f(x):\n    y = x * {k}.5\n    y[0] = np.sin(y[1])\n    return np.sum(y)\n"
    name = f"<cell {k} of test_generated>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = {"np": np}
    exec(compile(text, name, "exec"), namespace)
    return namespace["f"]


WAYS = {
    "jit": lambda f: fwdad.jit(f, backend="numpy")(X),
    "jit of grad": lambda f: fwdad.jit(fwdad.grad(f), backend="numpy")(X),
    "grad": lambda f: fwdad.grad(f)(X),
    "vjp": lambda f: fwdad.vjp(f, X)[1](1.0),
}


@pytest.mark.usefixtures("young_heap")
@pytest.mark.slow_cases("vjp")
@pytest.mark.parametrize("way", every(3, WAYS))
def test_ever_new_programs_leave_none(way, monkeypatch):
    monkeypatch.setattr("fwdad.drivers.tape_cache._KEPT", 1)  # of the tapes that are found again
    for k in range(2):
        WAYS[way](cell(k))
    before = texts()
    for k in range(2, 7):
        WAYS[way](cell(k))
    assert len(texts()) <= len(before) + 1


@pytest.mark.usefixtures("young_heap")
def test_it_is_there_while_one_of_its_functions_is():
    name = "<fwdad test of generated>"
    text = "def f(x):\n    return 1 / x\n"
    first = generated_source.define(text, name, {}, "f", [None, None])
    second = generated_source.define(text, name, {}, "f", [None, None])
    del first
    assert name in texts()
    try:
        second(0)
    except ZeroDivisionError:
        told = traceback.format_exc()
    assert "return 1 / x" in told
    del second
    assert name not in texts()


@pytest.mark.usefixtures("young_heap")
def test_a_text_is_not_dropped_while_linecache_is_walked_over():
    name = "<fwdad test of walking>"
    function = generated_source.define("def f():\n    pass\n", name, {}, "f")
    names = [*linecache.cache]
    del function
    gc.collect()
    assert all(key in linecache.cache for key in names)
    assert name not in texts()
