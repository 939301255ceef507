"""Programs on whole arrays."""

import numpy as np

from tests.frontend.agreement import Programs

PROGRAMS = program = Programs()
V = np.array([0.5, -1.25, 2.0, 3.5])
W = np.array([2.0, 0.1, -4.0, 1.0, 7.0, 0.25])
M = np.arange(12.0).reshape(3, 4) / 7
S = np.array([[4.0, 1, 0], [1, 5, 2], [0, 2, 6]])
T = np.eye(5) * 3 + 0.5


@program((V,), (W,))
def elementwise(a):
    return np.sin(a) * 2 + a**2 - 1 / (a + 10), np.maximum(a, 0), np.abs(a), -a, a > 1


@program((V,), (W,))
def reductions(a):
    return (
        a.sum(),
        a.mean(),
        a.max(),
        a.argmin(),
        np.prod(a),
        a.std(),
        np.linalg.norm(a),
        np.median(a),
    )


@program((M,), (M[:2],), (np.ones((6, 2)),))
def reductions_along_axes(a):
    return (
        a.sum(axis=0),
        a.mean(1),
        a.max(axis=-1, keepdims=True),
        np.cumsum(a, axis=1),
        a.sum((0, 1)),
    )


@program((M, V), (np.ones((2, 6)), W))
def products(a, x):
    return (
        a @ x,
        a.T @ a,
        np.dot(a, x),
        np.outer(x, x),
        np.einsum("ij,j->i", a, x),
        a * x,
        np.inner(x, x),
    )


@program((S, V[:3]), (T, W[:5]))
def linear_algebra(a, b):
    return (
        np.linalg.solve(a, b),
        np.linalg.inv(a),
        np.linalg.det(a),
        np.linalg.cholesky(a),
        np.trace(a),
    )


@program((S,), (T,))
def decompositions(a):
    w, v = np.linalg.eigh(a)
    q, r = np.linalg.qr(a)
    u, s, vh = np.linalg.svd(a)
    return w, s, abs(r), np.linalg.slogdet(a).logabsdet


@program((np.zeros((2, 2)),), (np.eye(2),), (np.ones((3, 3)),))
def singular_matrix(a):
    return np.linalg.solve(a, np.ones(len(a)))


@program((V,), (W,))
def numpy_in_python(a):
    return (
        np.gradient(a),
        np.diff(a),
        np.average(a, weights=a**2),
        np.ptp(a),
        np.roll(a, 1),
        np.trapezoid(a),
    )


@program((M,), (M[:, :3],))
def covariances(a):
    return np.cov(a), np.corrcoef(a + M[0, 0]), np.var(a, axis=0, ddof=1)


@program((V, W), (W, V))
def joining(a, b):
    return np.concatenate([a, b]), np.hstack((a, b)), np.append(a, 1.0)


@program((V,), (W,))
def stacking(a):
    return (
        np.stack([a, a * 2]),
        np.vstack([a, a]),
        np.column_stack([a, a]),
        np.tile(a, 2),
        np.repeat(a, 3),
    )


@program((M,), (np.ones((4, 6)),))
def shapes(a):
    n, m = a.shape
    return (
        a.reshape(m, n),
        a.reshape(-1),
        a.T,
        a.size,
        a.ndim,
        a.shape,
        len(a),
        a.reshape(n * m),
        a.ravel(),
    )


@program((V,), (W,))
def where_and_select(a):
    return (
        np.where(a > 0, np.sqrt(np.abs(a)), 0),
        np.clip(a, -1, 1),
        np.sign(a),
        np.heaviside(a, 0.5),
    )


@program((V,), (W,))
def sorting(a):
    i = np.argsort(a)
    return np.sort(a), i, a[i], np.searchsorted(np.sort(a), 0.7), a[::-1], np.flip(a)


@program((V,), (W,), (-V,))
def selections(a):
    return (
        a[a > 0],
        np.nonzero(a > 0)[0],
        np.unique(np.round(a)),
        np.extract(a < 1, a),
        a[np.abs(a) < 3].sum(),
    )


@program((V, 2), (W, 3))
def axes_and_lengths_by_shape(a, k):
    n = a.shape[0]
    b = np.zeros((n, n + 1))
    b[:, 1:] = a
    return b, np.arange(n) * k, a[: n // 2], np.eye(n) * 2, np.identity(n)


@program((V,), (W,))
def second_difference_matrix(a):
    n = len(a)
    d = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    return d @ a


@program((V,), (W,))
def polynomials(a):
    return (
        np.polyval([1.0, 2.0, 3.0], a),
        np.polyval(a, 2.0),
        np.interp(0.3, np.arange(len(a)), a),
        np.convolve(a, [1, 2]),
    )


@program((V,), (W,))
def fourier(a):
    return np.fft.fft(a), np.fft.ifft(np.fft.fft(a)).real, np.abs(np.fft.rfft(a))


@program((V, 1.0), (W, 2.0))
def mixed_scalars(a, x):
    y = np.float64(x) * 2
    return y, np.sin(x), a[0] + x, np.sqrt(a[0]), np.exp(x) * a, np.float32(x) * x, np.int64(3) * x


@program((V,), (W,))
def meshes(a):
    x, y = np.meshgrid(a, a)
    return x * y, np.broadcast_to(a, (2, len(a))) + 1, a[:, None] * a[None, :]


@program((V,), (W,))
def with_errstate(a):
    with np.errstate(divide="ignore", invalid="ignore"):
        return a / (a - a), np.log(a)


@program((V,), (W,))
def errors_of_shapes(a):
    return a + np.ones(4)


@program((V, 1), (W, 1))
def axis_argument(a, k):
    m = np.outer(a, a)
    return m.sum(axis=k)


@program((V,), (W,))
def methods(a):
    return (
        a.copy(),
        a.dot(a),
        a.cumsum(),
        a.clip(0, 1),
        a.round(),
        a.repeat(2),
        a.tolist() if False else 0,
        a.astype(int),
    )


@program((M,), (np.ones((3, 2)),))
def iteration_makes_a_list(a):
    first, second, third = a
    return first + second * third, [row.sum() for row in a]


@program((np.arange(24.0).reshape(2, 3, 4),), (np.ones((4, 2, 2)),))
def three_axes(a):
    return (
        a[:, 0],
        a[..., -1],
        a.transpose(2, 0, 1),
        np.swapaxes(a, 0, 1),
        np.moveaxis(a, 0, -1),
        a.sum((0, 2)),
    )


@program((V, W), (W, V))
def kron_and_tensordot(a, b):
    return np.kron(a, b), np.vdot(a[:2], b[:2]), np.tensordot(a, b, 0)


@program((V,), (W,))
def scalars_of_arrays(a):
    s = a[0]
    t = a.sum()
    return (
        s + 1,
        t * s,
        s > t,
        float(s),
        int(t),
        -s,
        abs(s),
        s**2,
        s.item(),
        type(s) is np.float64,
        isinstance(s, float),
    )
