"""Chunk sizes bound memory and change nothing else: shapes, scalars, dtypes, seeds, aliases."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.differences import central_differences


def sum_of_squares(x):
    return np.sum(x**2)


@pytest.mark.parametrize(
    ("n", "chunk"),
    [(3, 1), (3, 2), (3, 3), (10, 8), (13, 1), (13, 4), (13, 6), (13, 12), (13, 13), (13, 64)],
)
def test_gradient_of_squares(n, chunk):
    x = np.linspace(-2.0, 3.0, n)
    assert_array_equal(fwdad.jacobian(sum_of_squares, x, chunk=chunk), 2 * x)
    assert_array_equal(fwdad.grad(sum_of_squares, chunk=chunk)(x), 2 * x)
    assert_array_equal(fwdad.jvp(sum_of_squares, x, chunk=chunk)[1], 2 * x)


def elementwise_program(x):
    y = np.sin(x) * np.exp(-x) / (2.0 + x[::-1] ** 2)
    y[1:] += x[:-1] * y[1:]
    return np.sqrt(1 + y**2) - np.arctan2(y, x)


@pytest.mark.parametrize("n", [3, 10, 13])
def test_all_chunk_sizes_agree_to_the_bit(n):
    x = np.linspace(-2.0, 3.0, n)
    y, everything = fwdad.value_and_jacobian(elementwise_program, x, chunk=None)
    assert_array_equal(y, elementwise_program(x))
    assert_allclose(everything, central_differences(elementwise_program, x), rtol=1e-8, atol=1e-9)
    for chunk in [*range(1, n + 2), 64, "auto"]:
        assert_array_equal(fwdad.jacobian(elementwise_program, x, chunk=chunk), everything)


def product_program(a):
    inverse = np.linalg.solve(a, np.eye(len(a)) + a.T)
    return a @ inverse @ a - np.einsum("ij,jk->ki", a, inverse)


@pytest.mark.parametrize("n", [2, 3])
def test_matrix_products_agree_to_rounding(n):
    a = np.linspace(-1.0, 2.0, n * n).reshape(n, n) + 2 * np.eye(n)
    everything = fwdad.jacobian(product_program, a, chunk=None)
    assert_allclose(everything, central_differences(product_program, a), rtol=1e-8, atol=1e-8)
    scale = np.max(np.abs(everything))
    for chunk in range(1, n * n + 2):
        jacobian = fwdad.jacobian(product_program, a, chunk=chunk)
        assert_allclose(jacobian, everything, rtol=1e-13, atol=1e-13 * scale)


@pytest.mark.parametrize("bad", [0, -1, 2.5, "many", True])
def test_wrong_chunk_is_refused(bad):
    with pytest.raises((TypeError, ValueError), match="chunk"):
        fwdad.jacobian(sum_of_squares, np.ones(3), chunk=bad)


def test_runs_once_per_chunk_and_never_for_the_value(capsys):
    def f(x):
        next(runs)
        print("run", end=" ")
        return x * 2.0

    for chunk, expected in [(1, 7), (2, 4), (3, 3), (6, 2), (7, 1), (None, 1)]:
        runs = itertools.count()
        fwdad.value_and_jacobian(f, np.ones(7), chunk=chunk)
        assert next(runs) == expected
        assert capsys.readouterr().out == "run "


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 7, None, "auto"])
def test_directions_in_chunks(chunk, rng):
    x, v = rng.normal(size=(2, 3)), rng.normal(size=(7, 2, 3))

    def f(x):
        return np.cumsum(x, axis=1).T * x[0, 0]

    y, y_dot = fwdad.jvp(f, x, v, chunk=chunk)
    assert_array_equal(y, f(x))
    jacobian = central_differences(f, x)
    assert y_dot.shape == (7, 3, 2)
    assert_allclose(y_dot, np.einsum("ijkl,nkl->nij", jacobian, v), rtol=1e-8, atol=1e-9)
    for k in range(7):
        assert_array_equal(y_dot[k], fwdad.jvp(f, x, v[k])[1])


def test_basis_directions_and_jacobian_are_one_array_in_two_orders(rng):
    x = rng.normal(size=(2, 3))

    def f(x):
        return np.outer(x[0], x[1])

    jacobian = fwdad.jacobian(f, x)
    assert jacobian.shape == (3, 3, 2, 3)
    for chunk in (1, 2, 3, 5, 6):
        y, y_dot = fwdad.jvp(f, x, chunk=chunk)
        assert_array_equal(y, f(x))
        assert y_dot.shape == (6, 3, 3)
        assert_array_equal(np.moveaxis(y_dot, 0, -1).reshape(3, 3, 2, 3), jacobian)


# -- unequal ranks: a misplaced lane axis has the right shape for N = 1 and N = the length


@pytest.mark.parametrize("chunk", [1, 2, 3, 6])
@pytest.mark.parametrize(
    "operation",
    [np.multiply, np.add, np.subtract, np.divide, np.arctan2, np.maximum, np.hypot, np.power],
)
def test_operands_of_unequal_rank(operation, chunk):
    x, y = np.array([0.7, 1.3, 2.1]), np.array([[0.5, 1.7, 0.2], [2.4, 0.9, 1.2]])
    for f, point in [
        (lambda x: operation(x, y), x),
        (lambda x: operation(y, x), x),
        (lambda y: operation(x, y), y),
        (lambda y: operation(y, x), y),
        (lambda x: operation(x, 0.6), x),
        (lambda x: operation(x[:, np.newaxis], x), x),
        (lambda y: operation(y[:, :, np.newaxis], y[:, np.newaxis]), y),
        (lambda x: operation(x[0], y), x),
    ]:
        value, jacobian = fwdad.value_and_jacobian(f, point, chunk=chunk)
        assert_array_equal(value, f(point))
        assert_allclose(jacobian, central_differences(f, point), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_product_of_a_vector_and_a_matrix_exactly(chunk):
    x, y = np.array([1.0, 2.0, 3.0]), np.array([[4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    assert_array_equal(
        fwdad.jacobian(lambda x: x * y, x, chunk=chunk), np.einsum("ij,jk->ijk", y, np.eye(3))
    )


@pytest.mark.parametrize("n", [2, 3, 4])
def test_lengths_equal_to_the_chunk(n, rng):
    """Fancy indices, products and solves with every axis as long as the chunk is wide."""
    a = rng.normal(size=(n, n, n)) + 3 * np.eye(n)
    index = rng.permutation(n)

    def f(a):
        picked = a[:, index, index] + a[index][:, 0] + a[0, index, np.newaxis, 1][:, 0]
        moved = np.moveaxis(a, 0, -1)[..., index].sum(axis=1)
        solved = np.linalg.solve(a, np.ones((n, 1)))[..., 0]
        return picked @ moved + solved + a[a > 0].sum() + np.take(a, index, axis=1)[0] + a.T[0]

    expected = central_differences(f, a)
    for chunk in {1, 2, 3, n}:
        assert_allclose(fwdad.jacobian(f, a, chunk=chunk), expected, rtol=1e-7, atol=1e-8)


# -- aliases


class Fields(NamedTuple):
    left: list
    right: list


def shared_fields():
    arrays = [np.array([1.0, 2.0]), np.array([3.0])]
    return Fields(arrays, arrays)


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_shared_leaf_has_one_tangent(chunk):
    x = shared_fields()
    y, y_dot = fwdad.jvp(lambda p: np.sum(p.left[0] * p.right[0]), x, shared_fields(), chunk=chunk)
    assert y == 5.0
    assert y_dot == 10.0
    gradient = fwdad.grad(lambda p: np.sum(p.left[0] ** 2 * p.right[1]), chunk=chunk)(x)
    for side in gradient:
        assert_array_equal(side[0], [6.0, 12.0])
        assert_array_equal(side[1], [5.0])


def test_store_through_one_field_is_seen_through_the_other():
    def f(p):
        p.left[0][0] = p.right[1][0] * 10.0
        p.left.append(p.right[0] * 2.0)
        return np.concatenate((p.right[0], p.right[2]))

    x = shared_fields()
    y, y_dot = fwdad.jvp(f, x, shared_fields())
    assert_array_equal(y, [30.0, 2.0, 60.0, 4.0])
    assert_array_equal(y_dot, [30.0, 2.0, 60.0, 4.0])  # linear in x, and the seed is x
    assert len(x.left) == 2
    assert_array_equal(x.left[0], [1.0, 2.0])


def test_unequal_seeds_for_a_shared_leaf_raise():
    seed = Fields([np.ones(2), np.ones(1)], [np.ones(2), np.zeros(1)])
    with pytest.raises(fwdad.errors.SeedError, match=r"(?i)shared|same|twice"):
        fwdad.jvp(lambda p: np.sum(p.left[0]), shared_fields(), seed)


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_two_arguments_are_independent_though_one_array(chunk):
    x = np.array([2.0, 3.0])
    seeds = (np.array([1.0, 0.0]), np.array([10.0, 100.0]))
    y, y_dot = fwdad.jvp(lambda a, b: a * b**2, x, seeds, args=(x,), argnums=(0, 1), chunk=chunk)
    assert_array_equal(y, x**3)
    assert_array_equal(y_dot, seeds[0] * x**2 + seeds[1] * 2 * x * x)
    only_first = fwdad.jacobian(lambda a, b: a * b, x, args=(x,), chunk=chunk)
    assert_array_equal(only_first, np.diag(x))


@pytest.mark.parametrize("chunk", [1, 2, 3])
@pytest.mark.parametrize("argnums", [(0, 1), 0, 1])
def test_store_into_an_aliased_argument_raises(argnums, chunk):
    def f(a, b):
        a[0] = 7.0
        return a * b

    x = np.array([2.0, 3.0, 4.0])
    with pytest.raises(fwdad.errors.AliasedArgumentError):
        fwdad.jacobian(f, x, args=(x,), argnums=argnums, chunk=chunk)
    with pytest.raises(fwdad.errors.AliasedArgumentError):
        fwdad.jacobian(f, x[:2], args=(x[1:],), argnums=argnums, chunk=chunk)
    assert_array_equal(x, [2.0, 3.0, 4.0])
    fwdad.jacobian(f, x[:1], args=(x[1:],), argnums=argnums, chunk=chunk)  # these do not overlap


@pytest.mark.parametrize("chunk", [1, 2, 3, 9])
def test_inverse_of_views(chunk):
    big = np.arange(36.0).reshape(6, 6) % 7 + 5 * np.eye(6)
    big[1::2, ::2] += 1.5
    fortran = np.asfortranarray(big[:3, :3])
    for view in (big[::2, ::2], big[1:4, 2:5].T, big[::-2, 1::2], fortran):
        inverse = np.linalg.inv(view)
        jacobian = fwdad.jacobian(np.linalg.inv, view, chunk=chunk)
        assert_array_equal(jacobian, fwdad.jacobian(np.linalg.inv, view.copy(), chunk=chunk))
        assert_allclose(
            jacobian.reshape(9, 9), -np.kron(inverse, inverse.T), rtol=1e-12, atol=1e-14
        )


@pytest.mark.parametrize("chunk", [1, 2, None])
def test_list_that_contains_itself(chunk):
    x = [np.array([1.0, 2.0])]
    x.append(x)
    v = [np.array([3.0, 4.0])]
    v.append(v)

    def f(values):
        return values[1][1][0] * values[0]

    y, y_dot = fwdad.jvp(f, x, v, chunk=chunk)
    assert_array_equal(y, [1.0, 4.0])
    assert_array_equal(y_dot, [6.0, 16.0])
    jacobian = fwdad.jacobian(f, x, chunk=chunk)
    assert_array_equal(jacobian[0], [[2.0, 0.0], [0.0, 4.0]])
    assert jacobian[1] is jacobian
    out, out_dot = fwdad.jvp(lambda values: values, x, v, chunk=chunk)
    assert out[1] is out
    assert out_dot[1] is out_dot
    assert_array_equal(out_dot[0], [3.0, 4.0])


# -- shapes, scalars, dtypes


@pytest.mark.parametrize("chunk", [1, 2, 3, None, "auto"])
def test_empty_input(chunk):
    x = np.zeros(0)
    y, jacobian = fwdad.value_and_jacobian(sum_of_squares, x, chunk=chunk)
    assert y == 0.0
    assert jacobian.shape == (0,)
    assert fwdad.grad(sum_of_squares, chunk=chunk)(x).shape == (0,)
    assert fwdad.hessian(sum_of_squares, x).shape == (0, 0)
    assert fwdad.jacobian(lambda x: x * 2.0, x, chunk=chunk).shape == (0, 0)
    assert fwdad.jacobian(lambda x: np.ones(3) * x.sum(), x, chunk=chunk).shape == (3, 0)
    assert fwdad.jvp(lambda x: x * 2.0, x, np.zeros((4, 0)), chunk=chunk)[1].shape == (4, 0)


@pytest.mark.parametrize("chunk", [1, 2, 3, None])
def test_empty_output_and_no_directions(chunk):
    x = np.ones(3)
    assert fwdad.jacobian(lambda x: x[:0], x, chunk=chunk).shape == (0, 3)
    y, y_dot = fwdad.jvp(lambda x: x[:2] * 2.0, x, np.zeros((0, 3)), chunk=chunk)
    assert_array_equal(y, [2.0, 2.0])
    assert y_dot.shape == (0, 2)


@pytest.mark.parametrize("chunk", [1, 2, 3, None])
def test_constant_function(chunk):
    x = np.ones((2, 3))
    y, jacobian = fwdad.value_and_jacobian(lambda x: np.arange(4.0), x, chunk=chunk)
    assert_array_equal(y, np.arange(4.0))
    assert_array_equal(jacobian, np.zeros((4, 2, 3)), strict=True)
    assert_array_equal(fwdad.grad(lambda x: 1.0, chunk=chunk)(x), np.zeros((2, 3)), strict=True)
    assert_array_equal(fwdad.jvp(lambda x: np.ones(4), x, x)[1], np.zeros(4), strict=True)
    assert fwdad.derivative(lambda x: 5.0, 2.0) == 0.0
    assert_array_equal(fwdad.derivative(lambda x: np.ones(2), 2.0), np.zeros(2), strict=True)
    # half of it is constant
    y, (first, second) = fwdad.value_and_jacobian(
        lambda x: (np.ones(2), x[0] * 2.0), x, chunk=chunk
    )
    assert_array_equal(first, np.zeros((2, 2, 3)))
    assert second.shape == (3, 2, 3)
    assert_array_equal(fwdad.hessian(lambda x: np.sum(x), np.ones(3)), np.zeros((3, 3)))


@pytest.mark.parametrize("chunk", [1, 2, 3, None])
def test_zero_dimensional_arrays_stay(chunk):
    x = np.array(2.0)

    def f(x):
        y = x.reshape(())
        y[...] = y * 3.0
        return y

    y, jacobian = fwdad.value_and_jacobian(f, x, chunk=chunk)
    assert type(y) is np.ndarray
    assert y.shape == ()
    assert type(jacobian) is np.ndarray
    assert jacobian.shape == ()
    assert jacobian == 3.0
    y, y_dot = fwdad.jvp(f, x, np.array([1.0, 10.0, 100.0]), chunk=chunk)
    assert_array_equal(y_dot, [3.0, 30.0, 300.0])
    assert x == 2.0
    for g in (lambda x: x * 2.0, np.sin, lambda x: x[()], lambda x: x.copy(), np.sum):
        value = fwdad.value_and_jacobian(g, x, chunk=chunk)[0]
        assert type(value) is type(g(x))


@pytest.mark.parametrize("kind", [float, np.float64, np.float32])
def test_scalars_stay_scalars(kind):
    def f(x):
        assert isinstance(x, kind)
        assert type(x) is kind
        return x * x + 1

    x = kind(1.5)
    y, y_dot = fwdad.jvp(f, x, kind(2.0))
    assert type(y) is kind
    assert y == 3.25
    assert type(y_dot) is kind
    assert y_dot == 6.0
    slope = fwdad.derivative(f, x)
    assert type(slope) is kind
    assert slope == 3.0
    assert type(fwdad.grad(f)(x)) is kind


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_promotion_is_numpys(chunk):
    single, double = np.array([1.5, 2.5], dtype=np.float32), np.array([0.1, 0.2])
    for f in (
        lambda x: x * x,
        lambda x: x * 2.0,
        lambda x: x * double,
        lambda x: x * np.float64(2.0),
        lambda x: np.sum(x),
        lambda x: np.concatenate((x, double)),
        lambda x: x.astype(float) / 3,
        np.exp,
        lambda x: x * np.float32(0.1) * np.ones(2, dtype=int),
    ):
        y, jacobian = fwdad.value_and_jacobian(f, single, chunk=chunk)
        assert y.dtype == f(single).dtype
        assert_array_equal(y, f(single))
        assert jacobian.dtype == y.dtype
        differences = central_differences(lambda x, f=f: f(x.astype(np.float64)), single)
        assert_allclose(jacobian, differences, rtol=1e-6)
    y, jacobian = fwdad.value_and_jacobian(
        lambda x: (x * single).astype(np.float32), double, chunk=chunk
    )
    assert y.dtype == np.float32
    assert_allclose(jacobian, np.diag(single), rtol=1e-7)


@pytest.mark.parametrize("chunk", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_holomorphic(chunk, dtype):
    z = np.array([0.5 + 1j, -0.3 + 0.2j, 1.5 - 0.7j], dtype=dtype)

    def f(z):
        return np.exp(z) * z[0] ** 2 / (z + 3)

    y, jacobian = fwdad.value_and_jacobian(f, z, holomorphic=True, chunk=chunk)
    assert_array_equal(y, f(z))
    assert jacobian.dtype == dtype
    expected = np.diag(np.exp(z) * z[0] ** 2 / (z + 3) * (1 - 1 / (z + 3)))
    expected[:, 0] += 2 * np.exp(z) * z[0] / (z + 3)
    tolerance = 1e-13 if dtype == np.complex128 else 1e-5
    assert_allclose(jacobian, expected, rtol=tolerance, atol=tolerance)
    scalar = fwdad.derivative(lambda z: z**3, 1 + 2j, holomorphic=True)
    assert type(scalar) is complex
    assert scalar == pytest.approx(3 * (1 + 2j) ** 2, rel=1e-15)


@pytest.mark.parametrize("chunk", [1, 2, 3, 5])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.abs(np.fft.fft(x)),
        lambda x: np.fft.irfft(np.fft.rfft(x) * np.exp(1j * x[:3])),
        lambda x: np.abs(x[:2] + 1j * x[2:4]) ** 2 * np.angle(x[0] + 1j * x[1]),
        lambda x: np.real(np.conj(x * (1 + 2j)) * np.fft.ifft(x**2)),
        lambda x: (x.astype(complex) ** (0.5 + 1j)).imag,
        lambda x: np.linalg.norm(x * 1j + x[::-1]),
    ],
)
def test_real_to_real_through_complex(f, chunk):
    x = np.array([0.7, 1.3, 2.1, 0.4, 1.6])
    y, jacobian = fwdad.value_and_jacobian(f, x, chunk=chunk)
    assert_array_equal(y, f(x))
    assert jacobian.dtype == np.float64
    assert_allclose(jacobian, central_differences(f, x), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_real_to_complex(chunk):
    x = np.array([0.3, 0.5, 0.9])
    jacobian = fwdad.jacobian(lambda x: np.exp(1j * x), x, chunk=chunk)
    assert_allclose(jacobian, np.diag(1j * np.exp(1j * x)), rtol=1e-15)


# -- seeds


def test_seed_is_cast_to_the_dtype_of_x():
    x = np.array([1.0, 2.0], dtype=np.float32)
    y_dot = fwdad.jvp(lambda x: x * 3.0, x, np.array([1, 2]))[1]
    assert y_dot.dtype == np.float32
    assert_array_equal(y_dot, [3.0, 6.0])
    assert_array_equal(fwdad.jvp(lambda x: x * 3.0, x, [1.0, 0.5])[1], [3.0, 1.5])
    assert fwdad.jvp(lambda x: x * 3.0, 2.0, 1)[1] == 3.0


@pytest.mark.parametrize(
    ("x", "v"),
    [
        (np.ones(3), np.ones(4)),
        (np.ones(3), np.ones((2, 4))),
        (np.ones(3), np.ones((2, 2, 3))),
        (np.ones(3), 1.0),
        (np.ones(3), np.ones(3) * 1j),
        (2.0, np.ones((2, 2))),
        ([np.ones(2), 1.0], [np.ones(2)]),
        ([np.ones(2), 1.0], np.ones(3)),
        ({"a": 1.0}, {"b": 1.0}),
        ((np.ones(2), np.ones(2)), (np.ones((3, 2)), np.ones((4, 2)))),
        ((np.ones(2), np.ones(2)), [np.ones(2), np.ones(2)]),
        (np.ones(3), "abc"),
    ],
)
def test_seed_of_wrong_shape_or_structure(x, v):
    with pytest.raises(fwdad.errors.SeedError):
        fwdad.jvp(lambda x: 1.0, x, v)


def test_the_same_transformed_function_takes_any_size():
    gradient = fwdad.grad(sum_of_squares, chunk=2)
    for n in (3, 5, 1, 0, 8):
        x = np.linspace(0.0, 1.0, n)
        assert_array_equal(gradient(x), 2 * x)


def test_resized_argument_is_a_clear_error():
    def f(x):
        x.resize(5, refcheck=False)
        return x * 2.0

    x = np.ones(3)
    with pytest.raises((fwdad.errors.FwdadError, ValueError), match="resize"):
        fwdad.jacobian(f, x)
    assert_array_equal(x, np.ones(3))
