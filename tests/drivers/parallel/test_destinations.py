"""Jacobians that go into a memory map, or into a Zarr array that the workers write."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad
from fwdad.errors import CheckpointError, OutError
from tests.drivers.parallel import programs

X = np.linspace(0.1, 2.0, 80)


@pytest.fixture(scope="module", params=["alone", "threads", "processes"])
def executor(request):
    if request.param == "alone":
        yield None
    elif request.param == "threads":
        with ThreadPoolExecutor(2) as made:
            yield made
    else:
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as made:
            yield made


def into(out, f=programs.waves, x=X, *, chunk=10, mode="forward", **how):
    return fwdad.value_and_jacobian(f, x, out=out, chunk=chunk, mode=mode, **how)


@pytest.fixture
def array(tmp_path):
    zarr = pytest.importorskip("zarr")

    def made(name="J", shape=(40, 80), chunks=(8, 5), dtype=float, **more):
        return zarr.create_array(tmp_path / name, shape=shape, chunks=chunks, dtype=dtype, **more)

    return made


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_memory_map(executor, tmp_path, mode):
    out = np.memmap(tmp_path / "J", float, "w+", shape=(40, 80))
    y, J = into(out, mode=mode, executor=executor)
    assert J is out
    assert_array_equal(y, programs.waves(X))
    assert_array_equal(out, fwdad.jacobian(programs.waves, X, chunk=10, mode=mode))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_zarr(executor, array, mode):
    out = array()
    chunk = 10 if mode == "forward" else 16
    y, J = into(out, mode=mode, chunk=chunk, executor=executor)
    assert J is out
    assert_array_equal(y, programs.waves(X))
    assert_array_equal(out[:], fwdad.jacobian(programs.waves, X, chunk=chunk, mode=mode))


def test_zarr_resumed(executor, array, tmp_path):
    f = programs.Slow(tmp_path / "runs")
    out, kept = array(), {"executor": executor, "checkpoint_to": tmp_path / "blocks"}
    expected = fwdad.jacobian(programs.waves, X, chunk=10, mode="forward")
    into(out, f, **kept)
    before = f.runs()
    into(out, f, **kept)
    assert f.runs() - before <= 1  # threads look at f once more
    before = f.runs()
    sizes = [p.stat().st_size for p in (tmp_path / "blocks").glob("*.block")]
    assert max(sizes) < 300  # the numbers themselves are in the array alone
    out[:, 25:35] = 0  # somebody has changed two blocks meanwhile
    into(out, f, **kept)
    assert f.runs() in (before + 2, before + 3)
    assert_array_equal(out[:], expected)
    with pytest.raises(CheckpointError, match="other options: out="):
        into(array("another"), f, **kept)


def test_arrays_that_do_not_fit(array, executor, tmp_path):
    for out, asked, words in (
        (array("a"), {"chunk": 7}, "chunk=7.*Pass chunk=5, or a multiple"),
        (array("b"), {"chunk": "auto"}, "Pass chunk=5"),
        (array("c", shards=(16, 20)), {"chunk": 10}, "Pass chunk=20"),
        (array("d", shape=(41, 80)), {}, "columns of 40 numbers"),
        (array("e", shape=(40, 85)), {}, "the Jacobian 80 columns"),
        (array("f", dtype="f4"), {}, "cannot hold"),
        (array("g", shape=(40,), chunks=(8,)), {}, r"shape \(40,\)"),
        (np.zeros((40, 81)), {}, r"of shape \(40, 80\)"),
        (np.zeros((80, 40)), {}, r"of shape \(40, 80\)"),
        (np.zeros((8, 5, 80)).transpose(1, 0, 2), {}, "has gaps"),
        (np.ones((40, 80)), {"x": None}, "shares memory"),
        ([], {}, "out is a list"),
    ):
        if executor is None and not hasattr(out, "chunks"):
            continue  # written as it is made
        if "x" in asked:
            asked = {"x": out[0]}
        before = np.array(out[:])
        with pytest.raises(OutError, match=words):
            into(out, **asked, executor=executor)
        assert_array_equal(out[:], before)
    p = {"u": np.arange(1.0, 6.0), "v": np.arange(3.0)}
    how = {"executor": executor} if executor else {"checkpoint_to": tmp_path / "blocks"}
    with pytest.raises(OutError, match="one matrix"):
        into(np.zeros((14, 8)), programs.tree, p, chunk=2, **how)
