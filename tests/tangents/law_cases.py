"""The closed list as a table of calls, and how a law is compared with its function."""

import numpy as np
import pytest
import scipy.fft
import scipy.ndimage
import scipy.signal
from numpy.testing import assert_allclose, assert_array_equal

import fwdad.rules  # noqa: F401  (fills the closed list)
from fwdad.tangents.chunk import LAWS, Chunk
from fwdad.tangents.zero import ZERO

GENERATOR = np.random.default_rng(20)


def array(*shape):
    return GENERATOR.uniform(-2, 2, shape)


def turned(*shape):
    return array(*shape) + 1j * array(*shape)


A, B, C = array(2, 3), array(3, 4), array(2, 4, 3)


V, W = array(3), array(4)


S = array(2, 3, 3) + 4 * np.eye(3)


Z = turned(2, 3)


def through_its_rule(function):
    """What a linear rule does: the law is called as the function is (NumPy would not ask it)."""

    def call(*args, **options):
        for x in args:
            if type(x) is Chunk:
                return LAWS[function](*args, **options)
            if isinstance(x, Chunk):  # one that records
                return x._record(function, *args, **options)
        return function(*args, **options)

    return call


# function: [(call on x, a value of x), …]; the tangent takes the place of x
CASES = {
    np.sum: [
        (np.sum, A),
        (np.sum, np.float64(2.0)),
        (lambda x: np.sum(x, axis=0), C),
        (lambda x: np.sum(x, axis=(0, -1)), C),
        (lambda x: np.sum(x, axis=(), keepdims=True), C),
        (lambda x: np.sum(x, axis=1, keepdims=True), C),
        (lambda x: np.sum(x, keepdims=True), C),
        (lambda x: np.sum(x, axis=1, where=A[:, None] > 0), C),
        (lambda x: np.sum(x, where=V > 0), A),
        (lambda x: np.sum(x, dtype=complex), A),
        (lambda x: np.add.reduce(x, axis=1), A),
        (lambda x: x.sum(axis=1, keepdims=True), A),
    ],
    np.mean: [
        (np.mean, A),
        (lambda x: np.mean(x, axis=-1, keepdims=True), C),
        (lambda x: np.mean(x, axis=(0, 2)), C),
        (lambda x: np.mean(x, axis=0, where=[[True], [False]]), A),
        (lambda x: np.mean(x, axis=1, keepdims=True, where=[True, False, True]), A),
    ],
    np.cumsum: [
        (np.cumsum, C),
        (lambda x: np.cumsum(x, axis=0), C),
        (lambda x: np.cumsum(x, axis=-1), C),
    ],
    np.trace: [
        (np.trace, A),
        (lambda x: np.trace(x, 1), A),
        (lambda x: np.trace(x, -1, 2, 0), C),
    ],
    np.add.reduceat: [
        (lambda x: through_its_rule(np.add.reduceat)(x, [0, 2, 1]), W),
        (lambda x: through_its_rule(np.add.reduceat)(x, [0, 1], axis=1), C),
    ],
    np.bincount: [
        (lambda x: np.bincount([0, 2, 0, 5], x), W),
        (lambda x: np.bincount([1, 1, 0], x, minlength=4), V),
    ],
    np.reshape: [
        (lambda x: np.reshape(x, (3, 2)), A),
        (lambda x: np.reshape(x, -1), C),
        (lambda x: np.reshape(x, (4, -1), order="F"), C),
        (lambda x: np.reshape(x, 6), A),
        (lambda x: x.reshape(3, -1), A),
        (lambda x: x.reshape((1, 6)), A),
        (lambda x: np.reshape(x, (1, 1)), np.float64(2.0)),
    ],
    np.ravel: [
        (np.ravel, C),
        (lambda x: np.ravel(x, order="F"), C),
        (lambda x: x.ravel(), A),
        (lambda x: x.flatten(), A),
    ],
    np.transpose: [
        (np.transpose, C),
        (lambda x: np.transpose(x, (1, -1, 0)), C),
        (lambda x: x.T, C),
        (lambda x: x.transpose(1, 0), A),
        (lambda x: x.transpose((2, 0, 1)), C),
        (np.transpose, V),
    ],
    np.permute_dims: [(lambda x: np.permute_dims(x, (1, 2, 0)), C)],
    np.swapaxes: [
        (lambda x: np.swapaxes(x, 0, -1), C),
        (lambda x: x.swapaxes(1, 2), C),
        (lambda x: x.mT, C),
    ],
    np.moveaxis: [
        (lambda x: np.moveaxis(x, 0, -1), C),
        (lambda x: np.moveaxis(x, [0, 2], [-1, 0]), C),
    ],
    np.squeeze: [
        (np.squeeze, array(1, 3, 1)),
        (lambda x: np.squeeze(x, -1), array(1, 3, 1)),
        (lambda x: x.squeeze(0), array(1, 3, 1)),
    ],
    np.expand_dims: [
        (lambda x: np.expand_dims(x, 1), A),
        (lambda x: np.expand_dims(x, (0, -1)), A),
    ],
    np.broadcast_to: [
        (lambda x: np.broadcast_to(x, (4, 2, 3)), A),
        (lambda x: np.broadcast_to(x, (2, 3)), V),
        (lambda x: np.broadcast_to(x, 3), np.float64(1.5)),
        (lambda x: np.broadcast_to(x, (2, 3)), array(2, 1)),
    ],
    np.flip: [(np.flip, C), (lambda x: np.flip(x, 1), C), (lambda x: np.flip(x, (0, -1)), C)],
    np.roll: [
        (lambda x: np.roll(x, 2), C),
        (lambda x: np.roll(x, -1, axis=1), C),
        (lambda x: np.roll(x, (1, 2), axis=(0, -1)), C),
        (lambda x: np.roll(x, 1, axis=(0, 2)), C),
    ],
    np.diagonal: [
        (np.diagonal, A),
        (lambda x: np.diagonal(x, 1), A),
        (lambda x: np.diagonal(x, -1, 1, 2), C),
    ],
    np.diag: [
        (np.diag, V),
        (lambda x: np.diag(x, 1), V),
        (lambda x: np.diag(x, -2), V),
        (np.diag, A),
        (lambda x: np.diag(x, k=-1), A),
    ],
    np.tril: [(np.tril, A), (lambda x: np.tril(x, -1), C), (np.tril, V)],
    np.triu: [(np.triu, A), (lambda x: np.triu(x, 1), C), (np.triu, V)],
    np.repeat: [
        (lambda x: np.repeat(x, 2), A),
        (lambda x: np.repeat(x, [1, 0, 3], axis=1), A),
        (lambda x: np.repeat(x, 2, axis=0), C),
    ],
    np.tile: [
        (lambda x: np.tile(x, 2), A),
        (lambda x: np.tile(x, (2, 1, 3)), A),
        (lambda x: np.tile(x, (2, 1)), V),
        (lambda x: np.tile(x, 3), np.float64(2.0)),
    ],
    np.copy: [(np.copy, A), (lambda x: x.copy(), A)],
    np.asarray: [(lambda x: through_its_rule(np.asarray)(x, float), A)],
    np.ascontiguousarray: [(through_its_rule(np.ascontiguousarray), A)],
    np.positive: [(np.positive, A), (lambda x: +x, A)],
    np.take: [
        (lambda x: np.take(x, [5, 0, 0]), A),
        (lambda x: np.take(x, [[2, 0]], axis=1), A),
        (lambda x: np.take(x, 1, axis=0), A),
        (lambda x: np.take(x, [4, -7], axis=1, mode="wrap"), A),
        (lambda x: np.take(x, [9], mode="clip"), A),
    ],
    np.take_along_axis: [
        (lambda x: np.take_along_axis(x, np.array([[2, 0], [1, 1]]), 1), A),
        (lambda x: np.take_along_axis(x, np.array([[1, 0, 1]]), 0), A),
        (lambda x: np.take_along_axis(x, np.array([5, 0]), None), A),
        (lambda x: np.take_along_axis(x, np.array([[[2]], [[0]]]), 2), C),
        (lambda x: np.take_along_axis(x, np.array([[2, 0, 1, 1]] * 2), -1), array(1, 3)),
    ],
    np.where: [
        (lambda x: np.where(A > 0, x, 0), A),
        (lambda x: np.where(V > 0, 0.0, x), A),
        (lambda x: np.where(A > 0, x, 2 * x), V),
        (lambda x: np.where(C > 0, x, np.zeros(3)), V),
        (lambda x: np.where(True, x, 0), A),
    ],
    np.concatenate: [
        (lambda x: np.concatenate([x, 2 * x]), A),
        (lambda x: np.concatenate([x, x[:, :1]], axis=1), A),
        (lambda x: np.concatenate([x, x], axis=-1), C),
        (lambda x: np.concatenate([x, x.T], axis=None), A),
    ],
    np.stack: [
        (lambda x: np.stack([x, 2 * x]), A),
        (lambda x: np.stack([x, x], axis=-1), A),
        (lambda x: np.stack([x, x], axis=1), C),
        (lambda x: np.stack([x, 3 * x]), np.float64(1.0)),
    ],
    np.conjugate: [(np.conjugate, Z), (np.conj, A), (lambda x: x.conj(), Z)],
    np.real: [(np.real, Z), (np.real, A), (lambda x: x.real, Z)],
    np.imag: [(np.imag, Z), (lambda x: x.imag, Z)],
    np.matmul: [
        (lambda x: x @ V, A),
        (lambda x: x @ B, A),
        (lambda x: A @ x, V),
        (lambda x: V @ x, V),
        (lambda x: x @ B, V),
        (lambda x: V @ x, B),
        (lambda x: x @ V, C),
        (lambda x: C @ x, V),
        (lambda x: C @ x, B),
        (lambda x: x @ B, C),
        (lambda x: x @ S, A[:, None]),
        (lambda x: S @ x, C.mT[0]),
        (lambda x: x @ S, A),
        (lambda x: x @ S, V),
        (lambda x: S @ x, V),
        (lambda x: x @ S[0], S),
        (lambda x: Z @ x, V),
        (lambda x: np.matmul(x, B), A),
        (lambda x: through_its_rule(np.matmul)(C, x, axes=[(1, 2), (0, 1), (1, 2)]), B),
    ],
    np.dot: [
        (lambda x: np.dot(x, V), A),
        (lambda x: np.dot(A, x), B),
        (lambda x: np.dot(x, 3.0), A),
        (lambda x: np.dot(2.0, x), A),
        (lambda x: np.dot(x, A), np.float64(2.0)),
        (lambda x: np.dot(C, x), array(5, 3, 2)),
        (lambda x: np.dot(x, array(5, 3, 2) * 0 + 1), C),
        (lambda x: np.dot(x, V), V),
        (lambda x: np.dot(C, x), V),
    ],
    np.inner: [
        (lambda x: np.inner(x, V), A),
        (lambda x: np.inner(A, x), C),
        (lambda x: np.inner(x, 2.0), A),
        (lambda x: np.inner(x, V), V),
    ],
    np.tensordot: [
        (lambda x: np.tensordot(x, C, ([1], [2])), A),
        (lambda x: np.tensordot(A, x), A),
        (lambda x: np.tensordot(x, V, 0), A),
        (lambda x: np.tensordot(A, x, axes=([0, 1], [0, -1])), C),
        (lambda x: np.tensordot(C, x, axes=(2, 1)), A),
    ],
    np.einsum: [
        (lambda x: np.einsum("ij,jk->ik", x, B), A),
        (lambda x: np.einsum("ij,jk", A, x), B),
        (lambda x: np.einsum("ij->j", x), A),
        (lambda x: np.einsum("ii", x), S[0]),
        (lambda x: np.einsum("...ii->...i", x), S),
        (lambda x: np.einsum("...j,jk->...k", x, B), C),
        (lambda x: np.einsum("i,j,k->kij", V, x, W), V),
        (lambda x: np.einsum("zZ,Z->z", x, V), A),
        (lambda x: np.einsum(" i j , j -> i ", x, V), A),
    ],
    np.outer: [
        (lambda x: np.outer(x, W), V),
        (lambda x: np.outer(W, x), A),
        (lambda x: np.outer(x, A), W),
    ],
    np.kron: [
        (lambda x: np.kron(x, B), A),
        (lambda x: np.kron(A, x), V),
        (lambda x: np.kron(x, C), V),
    ],
    np.linalg.solve: [
        (lambda x: np.linalg.solve(S[0], x), V),
        (lambda x: np.linalg.solve(S[0], x), B),
        (lambda x: np.linalg.solve(S, x), C.mT),
        (lambda x: np.linalg.solve(S, x), B),
        (lambda x: np.linalg.solve(S, x), V),
        (lambda x: np.linalg.solve(S[0], x), C.mT),
        (lambda x: np.linalg.solve(S + 1j, x), V),
    ],
    np.convolve: [
        (lambda x: np.convolve(x, V), W),
        (lambda x: np.convolve(V, x, "same"), W),
        (lambda x: np.convolve(x, V, mode="valid"), W),
    ],
    np.correlate: [
        (lambda x: np.correlate(x, V), W),
        (lambda x: np.correlate(W, x, "full"), V),
    ],
    np.interp: [
        (lambda x: np.interp([0.5, -1.0, 9.0], [0.0, 1.0, 2.0], x), V),
        (lambda x: np.interp([[0.5], [5.5]], [0.0, 1.0, 2.0], x, period=3.0), V),
        (lambda x: np.interp(1.25, [0.0, 1.0, 2.0], x), V),
    ],
    np.linalg.matmul: [(lambda x: np.linalg.matmul(x, B), A)],
    np.vecdot: [
        (lambda x: np.vecdot(x, V), Z),
        (lambda x: np.vecdot(Z, x), A),
        (lambda x: through_its_rule(np.vecdot)(x, A[:, :1], axis=0), A),
    ],
    np.linalg.vecdot: [(lambda x: np.linalg.vecdot(Z, x, axis=0), A)],
    np.vdot: [(lambda x: np.vdot(x, A), Z), (lambda x: np.vdot(Z, x), A)],
    np.cross: [
        (lambda x: np.cross(x, V), A),
        (lambda x: np.cross(B, x, axisa=0, axisc=0), V),
        (lambda x: np.cross(x, B, axis=0), B),
    ],
    np.linalg.cross: [(lambda x: np.linalg.cross(V, x), A)],
    np.linalg.outer: [(lambda x: np.linalg.outer(x, W), V)],
    np.linalg.tensordot: [(lambda x: np.linalg.tensordot(A, x, axes=1), B)],
    np.linalg.trace: [(np.linalg.trace, C), (lambda x: np.linalg.trace(x, offset=1), C)],
    np.linalg.diagonal: [(np.linalg.diagonal, C), (lambda x: np.linalg.diagonal(x, offset=1), C)],
    np.linalg.matrix_transpose: [(np.linalg.matrix_transpose, C)],
    np.matrix_transpose: [(np.matrix_transpose, C)],
    np.pad: [
        (lambda x: np.pad(x, 1), A),
        (lambda x: np.pad(x, [(0, 2), (1, 0)]), A),
        (lambda x: np.pad(x, (1, 2), mode="constant", constant_values=0), A),
    ],
    np.fft.fftshift: [(np.fft.fftshift, A), (lambda x: np.fft.fftshift(x, axes=1), C)],
    np.fft.ifftshift: [(np.fft.ifftshift, A), (lambda x: np.fft.ifftshift(x, axes=(0, 2)), C)],
}


for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    real = name in ("rfft", "ihfft")
    for function in (getattr(np.fft, name), getattr(scipy.fft, name)):
        one = through_its_rule(function)
        CASES[function] = [
            (one, A if real else Z),
            (lambda x, one=one: one(x, 4, 0, "ortho"), A),
            (lambda x, one=one: one(x, n=2, axis=-1, norm="forward"), A if real else Z),
        ]
    for function in (
        *(getattr(np.fft, f"{name}{k}", None) for k in ("2", "n")),
        *(getattr(scipy.fft, f"{name}{k}") for k in ("2", "n")),
    ):
        if function is None:  # NumPy has no hfft of several axes
            continue
        many = through_its_rule(function)
        CASES[function] = [
            (many, C),
            (lambda x, many=many: many(x, axes=(0, 2)), C),
            (lambda x, many=many: many(x, (2, 4), axes=(2, 1), norm="ortho"), C),
        ]


for name in ("dct", "idct", "dst", "idst"):
    one = through_its_rule(getattr(scipy.fft, name))
    CASES[getattr(scipy.fft, name)] = [
        (one, A),
        (lambda x, one=one: one(x, type=3, axis=1, norm="ortho"), C),
    ]
    many = through_its_rule(getattr(scipy.fft, f"{name}n"))
    CASES[getattr(scipy.fft, f"{name}n")] = [
        (many, C),
        (lambda x, many=many: many(x, type=3, axes=(0, 2)), C),
        (lambda x, many=many: many(x, s=(2, 4), axes=(2, 1), norm="ortho"), C),
    ]


for name in ("correlate", "convolve"):
    one = through_its_rule(getattr(scipy.ndimage, f"{name}1d"))
    CASES[getattr(scipy.ndimage, f"{name}1d")] = [
        (lambda x, one=one: one(x, V, 0, None, "wrap"), A),
        (lambda x, one=one: one(x, W), Z),
        (lambda x, one=one: one(A, x, mode="constant", cval=2.0), W),
    ]
    many = through_its_rule(getattr(scipy.ndimage, name))
    CASES[getattr(scipy.ndimage, name)] = [
        (lambda x, many=many: many(x, A, origin=(0, -1)), B),
        (lambda x, many=many: many(B, x, mode="mirror"), A),
    ]
one = through_its_rule(scipy.ndimage.uniform_filter1d)
CASES[scipy.ndimage.uniform_filter1d] = [
    (lambda x, one=one: one(x, 3, 0, mode="nearest"), A),
    (lambda x, one=one: one(x, 2), C),
]


if hasattr(np, "matvec"):  # NumPy >= 2.2
    CASES[np.matvec] = [(lambda x: np.matvec(x, V), C), (lambda x: np.matvec(C, x), V)]
    CASES[np.vecmat] = [(lambda x: np.vecmat(x, B), A), (lambda x: np.vecmat(Z, x), B)]


FLAT = [
    pytest.param(call, value, id=f"{getattr(f, '__name__', 'f')}-{k}")
    for f, cases in CASES.items()
    for k, (call, value) in enumerate(cases)
]


# what may be asked of a tangent, and is none
QUERIES = {np.shape, np.ndim, np.size}


def same_lanes(call, lanes, chunk):
    """The call on a chunk is the call on each lane."""
    want = np.stack([call(lane) for lane in lanes])
    got = call(chunk)
    if got is ZERO:
        assert_array_equal(want, 0)
        return
    assert type(got) is Chunk
    assert (got.n, got.shape) == (len(lanes), want.shape[1:])
    scale = np.max(np.abs(want), initial=1e-30)
    assert_allclose(got.lanes, want, rtol=1e-12, atol=1e-13 * scale)
    assert got.lanes.dtype == want.dtype


def widths(*shapes):
    return sorted({1, 2, 3, *(n for shape in shapes for n in shape if n)})


def seeds(n, value, seed=0):
    rng = np.random.default_rng(seed)
    lanes = rng.uniform(-1, 1, (n, *np.shape(value)))
    if np.asarray(value).dtype.kind == "c":
        lanes = lanes + 1j * rng.uniform(-1, 1, lanes.shape)
    return lanes


one = through_its_rule(scipy.signal.upfirdn)
CASES[scipy.signal.upfirdn] = [
    (lambda x, one=one: one(V, x, 2, 3, 1), C),
    (lambda x, one=one: one(x, A, 3, 2), V),
]
flat = through_its_rule(scipy.signal._sigtools._convolve2d)
CASES[scipy.signal._sigtools._convolve2d] = [
    (lambda x, flat=flat: flat(x, A, 1, 2, 8), B),
    (lambda x, flat=flat: flat(B, x, 0, 1, 4), A),
]
for function in (scipy.ndimage.spline_filter1d, scipy.ndimage.spline_filter):
    one = through_its_rule(function)
    CASES[function] = [(lambda x, one=one: one(x, 3, mode="reflect"), A), (one, C)]
