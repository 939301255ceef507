"""Gradients of random programs that store what they compute, against forward mode."""

import linecache

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.transforms.reverse.memory import Memory
from fwdad.transforms.reverse.overwriting import Overwriting
from fwdad.transforms.reverse.rematerialize import Resolver
from tests.differences import central_differences
from tests.transforms.reverse.random_results import POINT, source


def program(seed):
    """A random program, with a source that can be read."""
    text, name = source(seed), f"<random results {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {"np": np}
    exec(compile(text, name, "exec"), names)
    return names["f"]


def check(seed, backend="numpy"):
    f = program(seed)
    expected = fwdad.jacobian(f, POINT, mode="forward")
    g = fwdad.jit(fwdad.value_and_grad(f), backend=backend)
    for _ in range(2):
        value, found = g(POINT)
        assert_allclose(value, f(POINT), rtol=1e-12)
        assert_allclose(found, expected, rtol=1e-9, atol=1e-11, err_msg=source(seed))
    _, pullback = fwdad.vjp(f, POINT)
    for _ in range(2):
        many = pullback(np.array([1.0, -2.0, 0.5]))
        assert_allclose(many, np.outer([1.0, -2.0, 0.5], expected), rtol=1e-9, atol=1e-11)


@pytest.mark.every(6, first=1)
@pytest.mark.parametrize("seed", range(25))
def test_gradient(seed):
    check(seed)


@pytest.mark.parametrize(
    "seed", [100, *(pytest.param(k, marks=pytest.mark.slow) for k in (101, 102))]
)
def test_compiled(seed):
    check(seed, backend="numba")


@pytest.mark.parametrize("seed", range(5))
def test_forward_mode_is_right(seed):
    f = program(seed)
    expected = fwdad.jacobian(f, POINT, mode="forward")
    assert_allclose(central_differences(f, POINT), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_more_gradients(seed):
    check(seed)


@pytest.mark.slow
def test_results_are_read_where_they_are_stored(monkeypatch):
    """These programs are about that; else the others would say nothing."""
    found = {"stored": 0, "written": 0}
    stored, content = Resolver._stored, Memory._of_new_content

    def of_stored(self, v):
        made = stored(self, v)
        found["stored"] += made is not None
        return made

    def of_content(self, *given):
        made = content(self, *given)
        found["written"] += made is not None
        return made

    monkeypatch.setattr(Resolver, "_stored", of_stored)
    monkeypatch.setattr(Memory, "_of_new_content", of_content)
    for seed in range(40):
        fwdad.trace(fwdad.grad(program(seed)), POINT)
    assert min(found.values()) >= 5, found


@pytest.mark.slow
def test_without_the_analysis_they_are_wrong(monkeypatch):
    """If all that is stored were taken to stay, some of the programs show it."""
    monkeypatch.setattr(Overwriting, "stays_written", lambda *_: True)
    monkeypatch.setattr(Overwriting, "is_stored_at_once", lambda *_: True)
    wrong = 0
    for seed in range(12):
        try:
            check(seed)
        except AssertionError:
            wrong += 1
    assert wrong >= 3
