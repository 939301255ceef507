"""Pullbacks of random programs that overwrite what they have read, against forward mode in chunks.

The value is memory that the program writes: a pullback that restores into it, leaves something
swapped, or loses a cotangent of a chunk shows here and not in a gradient.
"""

import warnings
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.drivers import residual_store
from fwdad.drivers.residual_store import Kept
from fwdad.ir.primitives.undo_log import RedoLog
from tests.transforms.reverse.random_stores import POINT, Wide, Writer, program

VALUES = ["return u", "return v[::-1], u[1:4]", "return {'s': s, 'u': u, 'v': v * s}"]


def flat(y):
    leaves = y.values() if isinstance(y, dict) else y if isinstance(y, tuple) else (y,)
    return [np.asarray(leaf) for leaf in leaves]


def like(y, leaves):
    if isinstance(y, dict):
        return dict(zip(y, leaves, strict=True))
    return tuple(leaves) if isinstance(y, tuple) else leaves[0]


def check(seed, kind, chunk, backend="numpy", *, by_log=True):
    """Compare; return whether the program is tame enough to tell.

    ``by_log``: what is restored is swapped through a log, however short a copy would be.
    """
    f, text = program(seed, kind, VALUES[seed % len(VALUES)])
    with warnings.catch_warnings(), mock.patch.object(residual_store, "_LESS", 0 if by_log else 16):
        warnings.simplefilter("ignore")
        y = f(POINT.copy())
        if not all(np.max(np.abs(part)) < 1e6 for part in flat(y)):
            return False
        J = fwdad.jacobian(f, POINT, chunk=chunk, mode="forward", stack=True)
        if not np.max(np.abs(J)) < 1e6:
            return False
        compare(fwdad.jit(f, backend=backend), y, J, chunk, text)
    return True


def compare(f, y, J, chunk, text):
    x, rng = POINT.copy(), np.random.default_rng(0)
    found, pullback = fwdad.vjp(f, x, chunk=chunk)
    for part, wanted in zip(flat(found), flat(y), strict=True):
        assert_allclose(part, wanted, rtol=1e-11, atol=1e-11, err_msg=text)
    before = [part.copy() for part in flat(found)]
    bars = [rng.uniform(-1, 1, (5, *part.shape)) for part in before]  # the last chunk is ragged
    expected = np.concatenate([b.reshape(5, -1) for b in bars], axis=1) @ J
    close = {"rtol": 1e-8, "atol": 1e-10 * (1 + np.max(np.abs(J))), "err_msg": text}
    many = pullback(like(y, bars))
    assert_allclose(many, expected, **close)
    assert_allclose(pullback(like(y, [b[3] for b in bars])), expected[3], **close)
    assert_array_equal(x, POINT)
    for part, wanted in zip(flat(found), before, strict=True):
        assert_array_equal(part, wanted, err_msg=text)
        if part.shape:
            part[...] = np.nan  # it is the caller's
    x[:] = np.nan
    assert_array_equal(pullback(like(y, bars)), many, err_msg=text)


DRAWN = {
    "seed": st.integers(0, 2**20),
    "kind": st.sampled_from([Writer, Wide]),
    "chunk": st.sampled_from([1, 2, 3]),
    "by_log": st.booleans(),
}


@settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(**DRAWN)
def test_pullback(seed, kind, chunk, by_log):
    assume(check(seed, kind, chunk, by_log=by_log))


@pytest.mark.slow
@settings(max_examples=400, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(**DRAWN)
def test_pullback_of_many(seed, kind, chunk, by_log):
    assume(check(seed, kind, chunk, by_log=by_log))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *range(30_000, 30_030)])
def test_pullback_of_compiled_code(seed):
    pytest.importorskip("numba")
    check(seed, Wide if seed % 2 else Writer, 1 + seed % 3, "numba")


def found(seeds):
    """How many of some programs fail the comparison."""
    failed = 0
    for seed in seeds:
        try:
            check(seed, Wide if seed % 2 else Writer, 2)
        except AssertionError:
            failed += 1
    return failed


@pytest.mark.slow
def test_a_log_that_is_not_undone_is_found(monkeypatch):
    monkeypatch.setattr(Kept, "_undo", lambda self: setattr(self, "_logs", []))
    assert found(range(40)) >= 3


@pytest.mark.slow
def test_a_log_that_is_undone_in_the_wrong_order_is_found(monkeypatch):
    def forwards(self):
        for flat in self._flat:
            at = self._addresses[: self.noted] - flat.__array_interface__["data"][0]
            inside = (at >= 0) & (at < flat.nbytes)
            flat[at[inside] // flat.itemsize] = self._contents[: self.noted][inside]

    monkeypatch.setattr(RedoLog, "_write_back", forwards)
    assert found(range(40)) >= 1
