"""Indices that are arrays, compiled: NumPy's shapes, order and errors; and the same backwards."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad

pytest.importorskip("numba")

N = np.newaxis
RNG = np.random.default_rng(7)


def loads(a, r, c, mask, rows, k):
    return (
        a[r], a[r, c], a[:, r], a[r, :, c], a[:, 1, c], a[k, r], a[..., c], a[1:, c[:2], ::2],
        a[r, N, c], a[mask], a[rows], a[rows, 1:, k], a[:, mask[0]], a[r[:, N], c, k], a[[0, -1]],
        np.take(a, c[:, N], axis=-1),
    )  # fmt: skip


def stores(a, r, c, mask, rows, v, k):
    b = a * 1.0
    b[r] = v[:, N, N]
    b[:, c] += v[:, N]
    b[rows] = b[rows] + 1.0
    b[rows, 0] = 7.0
    b[mask] *= -0.5
    b[b > 1.0] = np.sqrt(b[b > 1.0])
    b[k, c, 0] = v
    b[c] = b[r]
    np.add.at(b, (r, c), v[:, N])
    np.subtract.at(b, (slice(None), c), b[0, 0, :3, N])
    return b


def arguments(n=4):
    a = RNG.standard_normal((n, n, n))
    r, c = RNG.integers(-n, n, 3), RNG.integers(-n, n, 3)
    rows = RNG.random(n) > 0.4
    return a, r, c, a > 0.3, rows, RNG.standard_normal(3)


def compiled(f, *args, **options):
    made = fwdad.jit(f, **options)
    found = made(*args)
    assert "NumPy" not in fwdad.explain(made)
    return made, found


def test_loads():
    a, r, c, mask, rows, _ = arguments()
    made, _ = compiled(loads, a, r, c, mask, rows, -2)
    for n in (4, 6):
        a, r, c, mask, rows, _ = arguments(n)
        for held in (a, a.transpose(2, 0, 1), np.asfortranarray(a), a[::-1, :, ::-1]):
            args = held, r, c, held > 0.3, rows, -2
            for x, y in zip(made(*args), loads(*args), strict=True):
                assert type(x) is type(y)
                assert_array_equal(x, y)
    assert fwdad.cache_info(made).traces == 1


def test_stores_and_sums():
    a, r, c, mask, rows, v = arguments()
    made, _ = compiled(stores, a, r, c, mask, rows, v, 1)
    for n in (4, 7):
        for _ in range(5):  # places that come twice: the last one stays, sums take both
            a, r, c, mask, rows, v = arguments(n)
            for held in (a, a.T):
                args = held, r, c, held > 0.2, rows, v, -1
                assert_allclose(made(*args), stores(*args), rtol=1e-14, atol=1e-15)


def both(u, r, c, mask, v):
    """What the reverse pass makes of gathers, of places that come twice, and of masks."""
    b = u * 1.0
    b[r, c] = v * u[1, 0]
    b[:, c] += v
    b[mask] *= -0.5
    b[b > 1.0] = np.sqrt(b[b > 1.0])
    return np.sum(np.cos(b)) + np.sum(u[r, c] ** 3) + np.sum(np.sin(np.take(u, r, axis=0) * u[c]))


def test_backwards():
    """Against forward mode without a tape, which tests/rules compares with differences."""
    a, r, c, mask, _, v = arguments()
    made, _ = compiled(fwdad.grad(both), a[0], r, c, mask[0], v)
    for n in (4, 5):
        a, r, c, mask, _, v = arguments(n)
        for i in (r, r % 2):
            expected = fwdad.jacobian(both, a[0], args=(i, c, mask[0], v), mode="forward")
            assert_allclose(made(a[0], i, c, mask[0], v), expected, rtol=1e-12, atol=1e-13)


def choices(x, y, k, w):
    return (
        np.select([x > 1.0, y > 0.0, x < y], [x * y, np.sin(x), 2.0], np.cos(y)),
        np.choose(k, [x, y * x, -1.0]),
        np.bincount(k, w), np.bincount(k, minlength=7), np.nonzero(x > 0.2)[0],
        *np.nonzero(x[:, N] > y), x[x > 0.2], x * (y > 0.0),
    )  # fmt: skip


def test_choices_and_places():
    x, y, w = RNG.standard_normal((3, 9))
    k = RNG.integers(0, 3, 9)
    made, _ = compiled(choices, x, y, k, w)
    for args in ((x, y, k, w), (x[::2], -x[::2], k[::2], w[:5]), (x[:2], y[:2], k[:2], w[:2])):
        for found, wanted in zip(made(*args), choices(*args), strict=True):
            assert found.dtype == wanted.dtype
            assert_allclose(found, wanted, rtol=1e-14)
    for args, error in (((x, y, k + 1, w), ValueError), ((x, y, k - 1, w), ValueError)):
        with pytest.raises(error, match=r"invalid entry|negative"):
            made(*args)


def gathered(x, at, where):
    return np.sum(x[at] ** 2) + np.sum(x[where])


def test_errors_are_those_of_numpy():
    x, at = np.arange(5.0), np.array([0, 4, -5])
    for f in (gathered, fwdad.grad(gathered)):
        made, _ = compiled(f, x, at, x > 2.0)
        for wrong in (np.array([0, 5, 1]), np.array([0, 1, -6])):
            with pytest.raises(
                IndexError, match=f"index {wrong[abs(wrong) > 4][0]} is out of bounds"
            ):
                made(x, wrong, x > 2.0)
        with pytest.raises(IndexError, match="boolean index did not match"):
            made(x, at, np.ones(4, bool))
        assert_array_equal(made(x, at[:2], np.zeros(5, bool)), f(x, at[:2], np.zeros(5, bool)))

    def put(x, r, c, v):
        b = x * 1.0
        b[r, c] = v
        return b

    x = np.ones((3, 4))
    made, _ = compiled(put, x, at[:2] % 3, at[:2] % 3, x[0, :2])
    with pytest.raises(ValueError, match="shape mismatch"):
        made(x, at[:2] % 3, at[:2] % 3, x[0])
    with pytest.raises(IndexError):
        made(x, at[:2] % 3, at % 3, x[0, :2])


def test_indices_that_are_clipped():
    def f(a, i):
        return np.take(a, i, axis=1, mode="clip"), np.take(a[0], i, mode="clip")

    a = RNG.standard_normal((3, 4))
    for dtype in (np.int64, np.int32, np.uint8):
        i = np.array([[2, 0, 7], [1, 3, 100]]).astype(dtype)
        i[0, 0] -= 3 if dtype != np.uint8 else 0
        _, found = compiled(f, a, i)
        for x, y in zip(found, f(a, i), strict=True):
            assert_array_equal(x, y)
        empty, nothing = np.zeros((3, 0)), i[:0]
        assert fwdad.jit(f)(empty, nothing)[0].shape == (3, 0, 3)
        with pytest.raises(IndexError):
            fwdad.jit(f)(empty, i)
    wide = i.astype(np.uint64)
    assert_array_equal(fwdad.jit(lambda a, i: np.take(a, i, mode="clip"))(a[0], i), f(a, i)[1])
    assert fwdad.jit(f)(a, wide.astype(int))[0].shape == (3, 2, 3)


def test_reshaped_after_it_was_written():
    """A view of what is written no more is no copy; one that is written is seen in both."""

    def read(x):
        a = np.zeros((3, len(x)))
        a[:, 1:-1] = x[1:-1] ** 2
        flat = np.reshape(a, (-1,))
        return np.sum(flat * flat), flat[2:9]

    def written(x):
        a = np.zeros((3, len(x)))
        a[:, 1:-1] = x[1:-1] ** 2
        flat = np.reshape(a, (-1,))
        flat[4] = 7.0
        a[2] = 5.0
        return flat * 1.0, a

    def both(x):
        a = np.ones((3, len(x)))
        a[0] = x
        return np.reshape(a, (-1,)), a

    x = RNG.standard_normal(6)
    for f in (read, written, both):
        _, found = compiled(f, x)
        for y, wanted in zip(found, f(x), strict=True):
            assert_allclose(y, wanted, rtol=1e-14)


def test_indices_of_other_types():
    def f(a, i):
        return a[i], np.take(a, i, axis=1)

    a = RNG.standard_normal((3, 3)) + 1j
    for dtype in (np.int8, np.uint8, np.uint64, np.int32):
        i = np.array([[2, 0], [1, 1]]).astype(dtype)
        _, found = compiled(f, a, i)
        for x, y in zip(found, f(a, i), strict=True):
            assert_array_equal(x, y)
    for empty in (np.zeros(0, int), np.zeros((0, 2), int)):
        _, found = compiled(f, a, empty)
        for x, y in zip(found, f(a, empty), strict=True):
            assert x.shape == y.shape
