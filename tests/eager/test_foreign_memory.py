"""Arrays whose memory is a file's, or an object's that says it is its own base."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import fwdad
from fwdad.eager.memory.shadow import owner_of
from tests.differences import central_differences

W = np.array([0.5, 1.0, 2.0])
FUNCTIONS = [
    lambda w, data: np.sum(w * data),
    lambda w, data: sum(np.sum(w * row * w) for row in data),
    lambda w, data: np.sum(np.exp(w * data[:1]) / (1.0 + data[1])),
    lambda w, data: np.sum((data @ w) ** 2),
]


@pytest.fixture
def data(tmp_path):
    made = np.memmap(tmp_path / "data", float, "w+", shape=(2, 3))
    made[:] = np.arange(6.0).reshape(2, 3)
    return made


@pytest.mark.parametrize("transform", [fwdad.grad, fwdad.jacfwd, fwdad.jacrev])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_data_from_a_file(f, transform, data):
    expected = central_differences(lambda w: f(w, np.asarray(data)), W)
    assert_allclose(transform(f)(W, data), expected, rtol=1e-6)
    assert_allclose(transform(lambda w: f(w, data))(W), expected, rtol=1e-6)


@pytest.mark.parametrize("transform", [fwdad.grad, fwdad.jacfwd, fwdad.jacrev])
def test_an_argument_from_a_file(transform, data):
    found = transform(lambda x: np.sum(np.sin(x) * x))(data[1])
    assert_allclose(found, np.cos(data[1]) * data[1] + np.sin(data[1]))
    assert type(found) is np.ndarray


class OwnBase:
    """As Cython's arrays: ``base`` is asked of a view of the array itself."""

    def __init__(self, data):
        self.data = data

    @property
    def base(self):
        return self

    @property
    def __array_interface__(self):
        return self.data.__array_interface__


def test_an_object_that_is_its_own_base():
    held = OwnBase(np.arange(3.0))
    a = np.asarray(held)
    assert a.base is held
    assert owner_of(a) is held
    assert owner_of(a[1:]) is held
    kept = np.zeros(3)

    def f(x):
        kept[:] = x
        return np.sum(kept * a)

    assert_allclose(fwdad.jacfwd(f)(W), a)


def test_elements_of_an_iterator_lie_in_its_operands():
    kept, made = np.zeros(3), []

    def f(x):
        flags = [["readwrite"], ["writeonly", "allocate"]]
        with np.nditer([kept, None], op_flags=flags) as iterator:
            for old, new in iterator:
                assert owner_of(old) is kept
                new[...] = np.exp(old)
                old[...] = old + 1
            made.append(old)
            return x * iterator.operands[1].sum()

    assert_allclose(fwdad.jacobian(f, W[:2], chunk=1), 3 * np.eye(2))
    assert_allclose(kept, 1)
    assert owner_of(made[-1]) is made[-1]  # the iterator is closed


def test_an_iterator_within_a_package_under_jit():
    def f(x):
        return stats.kstest(x, "norm").statistic

    assert_allclose(fwdad.jit(f)(W), f(W))
