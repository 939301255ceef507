"""Sums over the parts of a data set: the same bits whoever works on them, in whatever order."""

import functools
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

import fwdad
from fwdad.errors import (
    ExecutorError,
    NonScalarOutputError,
    SharedWriteError,
    UnsupportedTypeError,
    UntraceableError,
)
from tests.drivers.parallel import programs

W = np.linspace(0.5, 1.5, 6)
RNG = np.random.default_rng(0)
DATA = RNG.random((103, 6)), RNG.random(103)
PARTS = list(zip(*(np.array_split(a, 13) for a in DATA), strict=True))


def loss(w, part, power=2.0):
    """A sum over rows."""
    features, y = part
    return np.sum(np.abs(np.tanh(features @ w) - y) ** power)


def in_pairs(items):
    """The sum of neighbours, of those again, and so on."""
    while len(items) > 1:
        items = [functools.reduce(np.add, items[k : k + 2]) for k in range(0, len(items), 2)]
    return items[0]


def expected(power=2.0):
    """Value and gradient, part by part."""
    values, gradients = zip(
        *(fwdad.value_and_grad(loss)(W, part, power) for part in PARTS), strict=True
    )
    return in_pairs(list(values)), in_pairs(list(gradients))


@pytest.fixture(scope="module", params=["alone", "threads", "processes"])
def executor(request):
    if request.param == "alone":
        yield None
    elif request.param == "threads":
        with ThreadPoolExecutor(3) as made:
            yield made
    else:
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as made:
            yield made


def test_bits_do_not_depend_on_who_works(executor):
    f = fwdad.value_and_grad(loss, over=PARTS, executor=executor)
    for power in (2.0, 3.0):
        value, gradient = f(W, power)
        assert value == expected(power)[0]
        assert_array_equal(gradient, expected(power)[1])
    assert_allclose(value, loss(W, DATA, 3.0))


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13])
def test_numbers_of_parts(count):
    f = fwdad.value_and_grad(loss, over=PARTS[:count])
    values = [fwdad.value_and_grad(loss)(W, part) for part in PARTS[:count]]
    assert f(W)[0] == in_pairs([v for v, _ in values])
    assert_array_equal(f(W)[1], in_pairs([g for _, g in values]))


def late(w, part):
    """The first parts are the last to be there."""
    k, x = part
    time.sleep(0.02 * (4 - k))
    return np.sum(x * w) ** 2


def test_who_is_first_does_not_matter():
    parts = [(k, RNG.random(6)) for k in range(4)]
    alone = fwdad.value_and_grad(late, over=parts)(W)
    with ThreadPoolExecutor(4) as made:
        found = fwdad.value_and_grad(late, over=parts, executor=made)(W)
    assert found[0] == alone[0]
    assert_array_equal(found[1], alone[1])


def tree_loss(p, part):
    """Of a composite, with aux."""
    value = np.sum((part * p["scale"] + p["shift"][0]) ** 2)
    return value, {"rows": len(part)}


def test_composites_and_aux(executor):
    p = {"scale": 2.0, "shift": [np.array(1.0), "a name"]}
    parts = np.array_split(DATA[0], 5)
    f = fwdad.value_and_grad(tree_loss, over=parts, has_aux=True, executor=executor)
    (value, aux), gradient = f(p)
    (wanted, _), whole = fwdad.value_and_grad(tree_loss, has_aux=True)(p, DATA[0])
    assert_allclose(value, wanted)
    assert_allclose(gradient["scale"], whole["scale"])
    assert_allclose(gradient["shift"][0], whole["shift"][0])
    assert [a["rows"] for a in aux] == [21, 21, 21, 20, 20]


def test_several_arguments(executor):
    def two(a, part, b):
        return np.sum(part * a * b)

    pytest.importorskip("cloudpickle")
    f = fwdad.value_and_grad(two, (0, 2), over=np.array_split(DATA[1], 4), executor=executor)
    value, (da, db) = f(2.0, 3.0)
    assert_allclose([value, da, db], np.sum(DATA[1]) * np.array([6.0, 3.0, 2.0]))


@pytest.mark.every(2, first=1)
def test_an_optimiser(executor):
    f = fwdad.value_and_grad(fwdad.jit(loss), over=PARTS, executor=executor)
    found = minimize(f, W, jac=True, method="BFGS", options={"maxiter": 5})
    assert found.fun < f(W)[0]
    with pytest.raises(UntraceableError, match=r"value_and_grad\(jit\(loss\), over=\.\.\.\)"):
        fwdad.jit(f)(W)


def test_zarr_arrays(executor, tmp_path):
    zarr = pytest.importorskip("zarr")
    features = zarr.create_array(tmp_path / "x", shape=(103, 6), chunks=(8, 3), dtype=float)
    y = zarr.create_array(tmp_path / "y", shape=(103,), chunks=(8,), dtype=float)
    features[:], y[:] = DATA
    found = fwdad.value_and_grad(loss, over=(features, y), executor=executor)(W)
    parts = [(DATA[0][k : k + 8], DATA[1][k : k + 8]) for k in range(0, 103, 8)]
    wanted = fwdad.value_and_grad(loss, over=parts)(W)
    assert found[0] == wanted[0]
    assert_array_equal(found[1], wanted[1])
    alone = fwdad.value_and_grad(programs.square_loss, over=y, executor=executor)(2.0)
    assert_allclose(alone, (4 * np.sum(DATA[1] ** 2), 4 * np.sum(DATA[1] ** 2)))
    other = zarr.create_array(tmp_path / "z", shape=(103,), chunks=(9,), dtype=float)
    with pytest.raises(UnsupportedTypeError, match="chunks of 8 and 103 in chunks of 9"):
        fwdad.value_and_grad(loss, over=(features, other))


def test_dask_collections(executor):
    dask = pytest.importorskip("dask")
    dask_array, dask_bag = pytest.importorskip("dask.array"), pytest.importorskip("dask.bag")
    with dask.config.set(scheduler="synchronous"):
        array = dask_array.from_array(DATA[1], chunks=10)
        found = fwdad.value_and_grad(programs.square_loss, over=array, executor=executor)(2.0)
        parts = [DATA[1][k : k + 10] for k in range(0, 103, 10)]
        wanted = fwdad.value_and_grad(programs.square_loss, over=parts)(2.0)
        assert found == wanted
        bag = dask_bag.from_sequence(list(DATA[1]), npartitions=7)
        found = fwdad.value_and_grad(programs.bag_loss, over=bag, executor=executor)(2.0)
        assert_allclose(found, wanted)
        wide = dask_array.from_array(DATA[0], chunks=(10, 3))
        with pytest.raises(UnsupportedTypeError, match="rechunk"):
            fwdad.value_and_grad(loss, over=wide)


# -- what is refused


def failing(w, part):
    """Raises for the third part."""
    if part[0] > 1:
        raise programs.Refused("the third part")
    return np.sum(w * part)


def test_an_exception_of_the_loss(executor):
    parts = [np.zeros(6), np.ones(6), np.full(6, 2.0)]
    with pytest.raises(programs.Refused, match="the third part"):
        fwdad.value_and_grad(failing, over=parts, executor=executor)(W)
    with pytest.raises(NonScalarOutputError):
        fwdad.value_and_grad(programs.vector_loss, over=parts, executor=executor)(W)


def test_a_loss_that_draws(executor):
    with pytest.raises(SharedWriteError, match="draws"):
        fwdad.value_and_grad(programs.drawn_loss, over=PARTS, executor=executor)(W)


def test_what_is_no_data_set():
    for over, words in ((DATA[0], "array_split"), (iter(PARTS), "list"), ([], "empty")):
        with pytest.raises(UnsupportedTypeError, match=words):
            fwdad.value_and_grad(loss, over=over)
    with pytest.raises(UnsupportedTypeError, match="argument 1 of the loss"):
        fwdad.value_and_grad(loss, 1, over=PARTS)
    with (
        ThreadPoolExecutor(1) as made,
        pytest.raises(UnsupportedTypeError, match="nothing to share out"),
    ):
        fwdad.value_and_grad(loss, executor=made)
    with pytest.raises(ExecutorError, match="shut down"):
        fwdad.value_and_grad(loss, over=PARTS, executor=made)
