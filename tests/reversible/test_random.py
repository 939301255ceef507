"""Random reversible programs: undone, and their gradients beside chunked forward mode."""

import collections

import numpy as np
import pytest
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

import fwdad
from fwdad.reversible import ancilla, compute, copy_out, reversible
from fwdad.reversible.lowering.cotangents import Cotangents
from tests.reversible.random_programs import arguments, make

ALL = tuple(range(5))


def flat(parts):
    return np.concatenate([np.ravel(p) for p in parts])


def gap(seed, *, compiled=False, chunk=3):
    """How far the program is from being undone, and its gradient from forward mode's."""
    f, _, _ = make(seed)
    args = arguments(seed)
    weights = [
        np.cos(1.0 + k + np.arange(np.size(a))).reshape(np.shape(a)) for k, a in enumerate(args)
    ]

    def loss(*args):
        total = 0.0
        for w, y in zip(weights, f(*args), strict=True):
            total = total + np.sum(w * y)
        return total

    try:
        there = f(*args)
    except fwdad.errors.InvertibilityError:
        assume(False)  # it reads in a block what that block's end changes: refused rightly
    undone = np.max(np.abs(flat((~f)(*there)) - flat(args)))
    traced = fwdad.jit(fwdad.grad(loss, argnums=ALL), backend="numba" if compiled else "numpy")
    gradient = traced(*args)
    forward = fwdad.jacfwd(loss, argnums=ALL, chunk=chunk)(*args)
    return undone, np.max(np.abs(flat(gradient) - flat(forward)))


@pytest.mark.parametrize("count", [12, pytest.param(30, marks=pytest.mark.slow)])
def test_undone_and_gradient(count):
    @settings(max_examples=count)
    @given(st.integers(0, 10**6), st.sampled_from([1, 2, 3]))
    def check(seed, chunk):
        note(make(seed)[1])
        undone, off = gap(seed, chunk=chunk)
        assert undone < 1e-11
        assert off < 1e-11

    check()


@settings(max_examples=3)
@given(st.integers(0, 10**6))
def test_compiled(seed):
    note(make(seed)[1])
    _, off = gap(seed, compiled=True)
    assert off < 1e-11


def test_every_kind_of_statement_occurs():
    kinds = collections.Counter()
    for seed in range(100):
        kinds.update(make(seed)[2].keys())
    wanted = {"update", "array", "swap", "flip", "instruction", "for", "while", "if", "ancilla"}
    assert min(kinds[k] for k in (*wanted, "compute")) >= 10


def test_a_planted_fault_is_caught(monkeypatch):
    pulled = Cotangents.pull
    calls = iter(range(10**6))

    def forgetful(self, value, bar, kind):
        if next(calls) % 2:  # every second contribution is lost
            pulled(self, value, bar, kind)

    monkeypatch.setattr(Cotangents, "pull", forgetful)
    found = []
    for seed in range(12):
        try:
            f, _, _ = make(seed)
            f(*arguments(seed))
        except fwdad.errors.InvertibilityError:
            continue
        found.append(gap(seed)[1] > 1e-6)
    assert sum(found) > len(found) // 2


def test_a_block_whose_end_changes_what_it_read_raises():
    @reversible
    def f(x, y):
        with compute():
            t = ancilla(0.0)
            t += np.sin(x)
            with copy_out():
                x += t

    with pytest.raises(fwdad.errors.InvertibilityError, match="'t'"):
        f(0.3, 1.0)
