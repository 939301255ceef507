"""Values and derivatives beside those of JAX: one expression, read with both libraries' names.

Where the two have another convention (`fwdad/rules/policies.md`), the row stays away from the
place, and `CONVENTIONS` tests it on purpose.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg
import scipy.special
from numpy.testing import assert_allclose

import fwdad

NUMPY = SimpleNamespace(
    np=np, la=np.linalg, fft=np.fft, sla=scipy.linalg, sp=scipy.special, erf=scipy.special.erf
)


@pytest.fixture(scope="module")
def names(jax):
    """JAX's names, as `NUMPY` has those of NumPy and SciPy."""
    import jax.numpy as jnp  # noqa: PLC0415  (optional)
    import jax.scipy  # noqa: PLC0415

    return SimpleNamespace(
        np=jnp, la=jnp.linalg, fft=jnp.fft, sla=jax.scipy.linalg, sp=jax.scipy.special
    )


def draw(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def between(low, high, *shape):
    return np.random.default_rng(7).uniform(low, high, size=shape)


def symmetric(m, a):
    return a + m.np.swapaxes(a, -1, -2)


def definite(m, a):
    """A positive definite matrix with well separated eigenvalues."""
    n = a.shape[-1]
    return a @ m.np.swapaxes(a, -1, -2) + m.np.diag(m.np.arange(1.0, n + 1))


def shifted(m, a):
    """A matrix that is far from singular."""
    return a + 4 * m.np.eye(a.shape[-1])


def signs_fixed(m, q, axis=-2):
    """Vectors whose sign a library may choose: up to it."""
    return q * m.np.sign(m.np.sum(q, axis=axis, keepdims=True))


def orthogonal(m, x):
    q, r = m.la.qr(x)
    return m.np.abs(r) * m.np.sum(q * q[::-1])


def singular(m, x):
    u, s, vt = m.la.svd(x, full_matrices=False)
    return u**2, s, (u * s**2) @ vt


def complex_parts(m, x):
    z = m.np.exp(x[0] + 1j * x[1])
    return m.np.real(z) * m.np.imag(z) + m.np.abs(z)


def angles(m, x):
    z = x[0] + 1j * x[1]
    return m.np.angle(z) + m.np.real(m.np.conj(z) * z**2)


INDEX = np.array([[0, 2], [1, 2]])
MASK = np.array([True, False, True, True])
WEIGHTS = draw(3, 4, 5)[0]

ELEMENTARY = {
    name: (lambda m, x, name=name: getattr(m.np, name)(x), x)
    for names, x in (
        (("sin cos tan sinh cosh tanh arctan arcsinh exp expm1 exp2 cbrt square negative "
          "reciprocal sinc abs deg2rad"), draw(5)),
        ("arcsin arccos arctanh", between(-0.9, 0.9, 5)),
        ("arccosh log log2 log10 log1p sqrt", between(1.1, 4.0, 5)),
    )
    for name in names.split()
}  # fmt: skip

TABLE = {
    **ELEMENTARY,
    # binary functions, broadcasting
    "power": (lambda m, x: m.np.power(x[:3], x[3:]), between(0.2, 2.0, 6)),
    "integer power": (lambda m, x: x**3 + x**-2, draw(4)),
    "arctan2": (lambda m, x: m.np.arctan2(x[:3], x[3:, None]), draw(6)),
    "hypot": (lambda m, x: m.np.hypot(x[:3], x[3:, None]), draw(6)),
    "logaddexp": (lambda m, x: m.np.logaddexp(x[:3], x[3:]), draw(6)),
    "maximum, minimum": (lambda m, x: m.np.maximum(x[:3], 0.2) * m.np.minimum(x[3:], 0.1), draw(6)),
    "remainder": (lambda m, x: m.np.remainder(x[:3], 1 + m.np.abs(x[3:])), draw(6)),
    "clip": (lambda m, x: m.np.clip(x, -0.5, 0.8), draw(7)),
    "where": (lambda m, x: m.np.where(x > 0, m.np.exp(x), x**2), draw(7)),
    "quotient": (lambda m, x: x / (1 + x[:, None] ** 2), draw(4)),
    "heaviside": (lambda m, x: m.np.heaviside(x, 0.5) * x, draw(4)),
    # reductions
    "sum": (lambda m, x: m.np.sum(x * x, axis=(0, 2)), draw(2, 3, 2)),
    "mean, keepdims": (lambda m, x: x - m.np.mean(x, axis=-1, keepdims=True), draw(2, 3)),
    "var": (lambda m, x: m.np.var(x, axis=0, ddof=1), draw(4, 3)),
    "std": (lambda m, x: m.np.std(x, axis=1), draw(3, 4)),
    "prod": (lambda m, x: m.np.prod(x, axis=1), draw(3, 4)),
    "max": (lambda m, x: m.np.max(x, axis=0), draw(4, 3)),
    "min, initial": (lambda m, x: m.np.min(x, axis=1, initial=0.1), draw(3, 4)),
    "ptp": (lambda m, x: m.np.ptp(x, axis=1), draw(3, 4)),
    "sum, where": (lambda m, x: m.np.sum(x * x, where=MASK, axis=1), draw(3, 4)),
    "average": (lambda m, x: m.np.average(x[0], weights=x[1] ** 2), draw(2, 4)),
    "median": (lambda m, x: m.np.median(x, axis=1), draw(3, 4)),
    "quantile": (lambda m, x: m.np.quantile(x, 0.3), draw(6)),
    "nansum": (lambda m, x: m.np.nansum(m.np.where(x > 1, np.nan, x * x)), draw(8)),
    # cumulative and sorting
    "cumsum": (lambda m, x: m.np.cumsum(x * x, axis=1), draw(2, 4)),
    "cumprod": (lambda m, x: m.np.cumprod(x), draw(5)),
    "diff": (lambda m, x: m.np.diff(x**2, n=2, axis=0), draw(4, 2)),
    "sort": (lambda m, x: m.np.sort(x, axis=0), draw(4, 3)),
    "gradient": (lambda m, x: m.np.gradient(x, 0.5), draw(5)),
    "trapezoid": (lambda m, x: m.np.trapezoid(x**2, dx=0.3), draw(5)),
    "argsort": (lambda m, x: x[m.np.argsort(x)] * m.np.arange(5), draw(5)),
    # shaping and gathering
    "reshape, transpose": (lambda m, x: m.np.transpose(m.np.reshape(x, (3, 2, 2)), (2, 0, 1)) * 2,
                           draw(12)),
    "concatenate, stack": (lambda m, x: m.np.stack([m.np.concatenate([x, x**2]), x.repeat(2)]),
                           draw(3)),
    "roll, flip": (lambda m, x: m.np.roll(x, 1, axis=1) * m.np.flip(x), draw(2, 3)),
    "tile, pad": (lambda m, x: m.np.pad(m.np.tile(x, 2), (1, 2)) ** 2, draw(3)),
    "pad, reflect": (lambda m, x: m.np.pad(x, 2, mode="reflect"), draw(4)),
    "triangles": (lambda m, x: m.np.tril(x) @ m.np.triu(x, 1), draw(3, 3)),
    "diagonal, trace": (lambda m, x: m.np.diagonal(x) * m.np.trace(x), draw(3, 3)),
    "slices": (lambda m, x: x[1:, ::-1] * x[:-1, :], draw(3, 4)),
    "index arrays": (lambda m, x: x[INDEX] ** 2, draw(3)),
    "index arrays and slices": (lambda m, x: x[:, INDEX, None] ** 2, draw(2, 3)),
    "mask": (lambda m, x: m.np.exp(x[:, MASK]), draw(2, 4)),
    "take_along_axis": (lambda m, x: m.np.take_along_axis(x, INDEX, axis=1), draw(2, 3)),
    "meshgrid": (lambda m, x: m.np.prod(m.np.array(m.np.meshgrid(x, x**2)), axis=0), draw(3)),
    # products
    "matmul": (lambda m, x: x @ x, draw(2, 3, 3)),
    "vector products": (lambda m, x: (x[0] @ x[1]) * m.np.outer(x[0], x[1]), draw(2, 3)),
    "einsum": (lambda m, x: m.np.einsum("ij,kj,lk->il", x, x, WEIGHTS[:2, :2]), draw(2, 3)),
    "tensordot": (lambda m, x: m.np.tensordot(x, WEIGHTS[:3, :2], axes=([1], [0])), draw(2, 3)),
    "kron": (lambda m, x: m.np.kron(x, x), draw(2, 2)),
    "cross": (lambda m, x: m.np.cross(x[0], x[1]), draw(2, 3)),
    "convolve": (lambda m, x: m.np.convolve(x[:4], x[4:], mode="same"), draw(7)),
    "polyval": (lambda m, x: m.np.polyval(x[:3], x[3:]), draw(5)),
    "interp": (lambda m, x: m.np.interp(np.array([0.3, 1.1, 2.9]), np.arange(4.0), x), draw(4)),
    "interp, points": (lambda m, x: m.np.interp(x, np.arange(4.0), np.arange(4.0) ** 2),
                       between(0.1, 2.9, 4)),
    # linear algebra
    "solve": (lambda m, x: m.la.solve(shifted(m, x), x[:, :2]), draw(3, 3)),
    "inv": (lambda m, x: m.la.inv(shifted(m, x)), draw(2, 3, 3)),
    "det": (lambda m, x: m.la.det(x), draw(2, 3, 3)),
    "slogdet": (lambda m, x: m.la.slogdet(shifted(m, x))[1], draw(3, 3)),
    "cholesky": (lambda m, x: m.la.cholesky(definite(m, x)), draw(3, 3)),
    "qr": (orthogonal, draw(4, 3)),
    "eigh, values": (lambda m, x: m.la.eigvalsh(definite(m, x)), draw(3, 3)),
    "eigh, vectors": (lambda m, x: signs_fixed(m, m.la.eigh(definite(m, x))[1]), draw(3, 3)),
    "svd, values": (lambda m, x: m.la.svd(x, compute_uv=False), draw(4, 3)),
    "svd, vectors": (singular, draw(4, 3)),
    "eig, values": (lambda m, x: m.np.sum(m.la.eigvals(m.np.diag(m.np.arange(3.0)) + 0.1 * x) ** 3)
                    .real, draw(3, 3)),
    "pinv": (lambda m, x: m.la.pinv(x), draw(4, 3)),
    "lstsq": (lambda m, x: m.la.lstsq(x[:, :2], x[:, 2], rcond=None)[0], draw(4, 3)),
    "norm": (lambda m, x: m.la.norm(x), draw(3, 3)),
    "norms of rows": (lambda m, x: m.la.norm(x, axis=1) + m.la.norm(x, 1, axis=1), draw(3, 4)),
    "spectral and nuclear norm": (lambda m, x: m.la.norm(x, 2) * m.la.norm(x, "nuc"), draw(3, 3)),
    "matrix_power": (lambda m, x: m.la.matrix_power(x, 5), draw(3, 3)),
    "multi_dot": (lambda m, x: m.la.multi_dot([x, x.T, x]), draw(2, 3)),
    "expm": (lambda m, x: m.sla.expm(x), draw(3, 3)),
    "solve_triangular": (lambda m, x: m.sla.solve_triangular(shifted(m, x), x, lower=True),
                         draw(3, 3)),
    "cho_solve": (lambda m, x: m.sla.cho_solve(m.sla.cho_factor(definite(m, x)), x), draw(3, 3)),
    "lu_solve": (lambda m, x: m.sla.lu_solve(m.sla.lu_factor(shifted(m, x)), x[:, 0]), draw(3, 3)),
    "block_diag, toeplitz": (lambda m, x: m.sla.block_diag(m.sla.toeplitz(x), x[None]), draw(3)),
    # transforms; what they return is complex
    "fft": (lambda m, x: m.fft.fft(x), draw(5)),
    "ifft of complex": (lambda m, x: m.fft.ifft(x[0] + 1j * x[1], n=6), draw(2, 4)),
    "rfft, irfft": (lambda m, x: m.fft.irfft(m.fft.rfft(x) ** 2, n=5), draw(5)),
    "fft2": (lambda m, x: m.np.abs(m.fft.fft2(x)) ** 2, draw(3, 4)),
    "fftshift": (lambda m, x: m.fft.fftshift(x) * x, draw(5)),
    # complex numbers inside
    "complex parts": (complex_parts, draw(2, 3)),
    "angle, conj": (angles, between(0.2, 1.0, 2, 3)),
    "complex solve": (lambda m, x: m.np.real(m.la.solve(shifted(m, x) + 1j * x.T, x[0])),
                      draw(3, 3)),
    # scipy.special
    **{
        name: (lambda m, x, name=name: getattr(m.sp, name)(x), x)
        for names, x in (
            ("erf erfc expit i0 i1 i0e i1e ndtr log_ndtr dawsn", draw(5)),
            ("gamma gammaln digamma entr logit erfinv exp1 expi ndtri spence",
             between(0.1, 0.9, 5)),
        )
        for name in names.split()
    },
    "xlogy, xlog1py": (lambda m, x: m.sp.xlogy(x[0], x[1]) + m.sp.xlog1py(x[1], x[0]),
                       between(0.2, 2.0, 2, 3)),
    "logsumexp": (lambda m, x: m.sp.logsumexp(x, axis=1, keepdims=True), draw(3, 4)),
    "softmax": (lambda m, x: m.sp.softmax(x, axis=0), draw(3, 4)),
    "log_softmax": (lambda m, x: m.sp.log_softmax(x, axis=1), draw(3, 4)),
    "beta, betaln": (lambda m, x: m.sp.beta(x[0], x[1]) + m.sp.betaln(x[1], x[0]),
                     between(0.5, 3.0, 2, 3)),
    "gammainc": (lambda m, x: m.sp.gammainc(2.5, x) * m.sp.gammaincc(1.5, x), between(0.5, 3.0, 4)),
    "betainc": (lambda m, x: m.sp.betainc(1.5, 2.5, x), between(0.1, 0.9, 4)),
    "polygamma": (lambda m, x: m.sp.polygamma(1, x), between(0.5, 3.0, 4)),
    "zeta": (lambda m, x: m.sp.zeta(2.5, x), between(0.5, 3.0, 4)),
    "kl_div, rel_entr": (lambda m, x: m.sp.kl_div(x[0], x[1]) * m.sp.rel_entr(x[1], x[0]),
                         between(0.2, 2.0, 2, 3)),
    "multigammaln": (lambda m, x: m.sp.multigammaln(x, 3), between(2.0, 5.0, 3)),
    "boxcox": (lambda m, x: m.sp.boxcox(x, 0.7) + m.sp.boxcox1p(x, 0.3), between(0.5, 3.0, 4)),
    "poch": (lambda m, x: m.sp.poch(x, 2.5), between(0.5, 3.0, 4)),
}  # fmt: skip


def flat(tree):
    return [tree] if not isinstance(tree, (tuple, list)) else [a for t in tree for a in flat(t)]


def compare(ours, theirs, rtol, what):
    for a, b in zip(flat(ours), flat(theirs), strict=True):
        b = np.asarray(b)
        scale = np.max(np.abs(b), initial=1.0)
        assert_allclose(a, b, rtol=rtol, atol=rtol * scale, err_msg=what)


def beside(jax, names, f, x, rtol):
    """One function by both: value, a direction, the Jacobian at every width."""
    here, there = (lambda x: f(NUMPY, x)), (lambda x: f(names, x))
    v = np.random.default_rng(3).normal(size=x.shape)
    value, value_dot, jacobian = jax.jit(
        lambda x: (*jax.jvp(there, (x,), (v,)), jax.jacfwd(there)(x)), compiler_options=QUICKLY
    )(x)
    y, y_dot = fwdad.jvp(here, x, v)
    compare(y, value, rtol, "value")
    compare(y_dot, value_dot, rtol, "jvp")
    for chunk in (1, 2, 3, None):
        compare(fwdad.jacobian(here, x, chunk=chunk), jacobian, rtol, f"chunk={chunk}")


QUICKLY = {"xla_backend_optimization_level": 0}  # compiling takes longer than running


@pytest.mark.parametrize("name", TABLE)
def test_function(jax, names, name):
    f, x = TABLE[name]
    beside(jax, names, f, x, rtol=1e-10)


# -- whole programs: ours assigns in place, theirs is the functional rewrite that JAX asks for


def brusselator(u):
    """The right-hand side of a reaction and diffusion on a line."""
    n = u.size // 2
    a, b = u[:n], u[n:]
    rate = np.empty_like(u)
    rate[:n] = 1 + a**2 * b - 4 * a
    rate[n:] = 3 * a - a**2 * b
    for part, ends in ((rate[:n], (1.0, 1.0)), (rate[n:], (3.0, 3.0))):
        held = a if ends[0] == 1.0 else b
        padded = np.zeros(n + 2)
        padded[0], padded[-1] = ends
        padded[1:-1] = held
        part += 0.5 * (padded[2:] - 2 * padded[1:-1] + padded[:-2])
    return rate


def brusselator_functional(m, u):
    n = u.size // 2
    a, b = u[:n], u[n:]

    def spread(v, end):
        padded = m.np.pad(v, 1, constant_values=end)
        return 0.5 * (padded[2:] - 2 * padded[1:-1] + padded[:-2])

    reaction = a**2 * b
    return m.np.concatenate(
        [1 + reaction - 4 * a + spread(a, 1.0), 3 * a - reaction + spread(b, 3.0)]
    )


def predator_and_prey(p):
    """The orbit of five Runge-Kutta steps, as a table."""
    orbit = np.zeros((6, 2))
    orbit[0] = p[4:]

    def rate(y):
        return np.array([y[0] * (p[0] - p[1] * y[1]), y[1] * (p[2] * y[0] - p[3])])

    h = 0.1
    for k in range(5):
        y = orbit[k]
        k1 = rate(y)
        k2 = rate(y + h / 2 * k1)
        k3 = rate(y + h / 2 * k2)
        orbit[k + 1] = y
        orbit[k + 1] += h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(y + h * k3))
    return orbit


def predator_and_prey_functional(m, p):
    def rate(y):
        return m.np.array([y[0] * (p[0] - p[1] * y[1]), y[1] * (p[2] * y[0] - p[3])])

    h, orbit = 0.1, [p[4:]]
    for _ in range(5):
        y = orbit[-1]
        k1 = rate(y)
        k2 = rate(y + h / 2 * k1)
        k3 = rate(y + h / 2 * k2)
        orbit.append(y + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(y + h * k3)))
    return m.np.stack(orbit)


PLACES = np.sort(between(0.0, 4.0, 6))
SEEN = np.sin(PLACES)


def likelihood(p):
    """The negative log likelihood of a Gaussian process, by a Cholesky factor written by hand."""
    n = len(PLACES)
    k = np.exp(p[0]) * np.exp(-0.5 * (PLACES[:, None] - PLACES) ** 2 / np.exp(2 * p[1]))
    k[np.diag_indices(n)] += np.exp(p[2])
    factor = np.zeros((n, n))
    for j in range(n):
        factor[j, j] = np.sqrt(k[j, j] - factor[j, :j] @ factor[j, :j])
        factor[j + 1 :, j] = (k[j + 1 :, j] - factor[j + 1 :, :j] @ factor[j, :j]) / factor[j, j]
    white = SEEN.copy()
    for j in range(n):
        white[j] -= factor[j, :j] @ white[:j]
        white[j] /= factor[j, j]
    return 0.5 * white @ white + np.sum(np.log(np.diag(factor)))


def likelihood_functional(m, p):
    distance = (PLACES[:, None] - PLACES) ** 2
    k = m.np.exp(p[0]) * m.np.exp(-0.5 * distance / m.np.exp(2 * p[1]))
    k = k + m.np.exp(p[2]) * m.np.eye(len(PLACES))
    return 0.5 * SEEN @ m.la.solve(k, SEEN) + 0.5 * m.la.slogdet(k)[1]


def kalman(p):
    """The filtered means of a noisy oscillator whose constants are the parameters."""
    step = np.eye(2)
    step[0, 1], step[1, 0] = p[0], -p[0] * p[1]
    mean, cov = np.zeros(2), np.eye(2)
    means = np.empty((len(SEEN), 2))
    for k, seen in enumerate(SEEN):
        mean = step @ mean
        cov = step @ cov @ step.T
        cov[np.diag_indices(2)] += np.exp(p[2])
        gain = cov[:, 0] / (cov[0, 0] + np.exp(p[3]))
        means[k] = mean + gain * (seen - mean[0])
        mean = means[k]
        cov = cov - np.outer(gain, cov[0])
    return means


def kalman_functional(m, p):
    step = m.np.array([[1.0, p[0]], [-p[0] * p[1], 1.0]])
    mean, cov, means = m.np.zeros(2), m.np.eye(2), []
    for seen in SEEN:
        mean = step @ mean
        cov = step @ cov @ step.T + m.np.exp(p[2]) * m.np.eye(2)
        gain = cov[:, 0] / (cov[0, 0] + m.np.exp(p[3]))
        mean = mean + gain * (seen - mean[0])
        cov = cov - m.np.outer(gain, cov[0])
        means.append(mean)
    return m.np.stack(means)


IMAGES, LABELS = draw(7, 3), np.array([0, 1, 1, 0, 1, 0, 0])


def network(w):
    """The loss of a small network, its weights cut out of one vector."""
    first, second, bias = w[:12].reshape(3, 4), w[12:20].reshape(4, 2), w[20:]
    hidden = IMAGES @ first
    hidden[hidden < 0] *= 0.1
    scores = hidden @ second
    scores += bias
    scores -= scores.max(axis=1, keepdims=True)
    chosen = scores[np.arange(7), LABELS]
    return np.mean(np.log(np.exp(scores).sum(axis=1)) - chosen)


def network_functional(m, w):
    first, second, bias = w[:12].reshape(3, 4), w[12:20].reshape(4, 2), w[20:]
    hidden = IMAGES @ first
    hidden = m.np.where(hidden < 0, 0.1 * hidden, hidden)
    scores = hidden @ second + bias
    return m.np.mean(m.sp.logsumexp(scores, axis=1) - scores[np.arange(7), LABELS])


PROGRAMS = {
    "brusselator": (brusselator, brusselator_functional, between(0.5, 2.0, 12)),
    "predator and prey": (
        predator_and_prey, predator_and_prey_functional,
        np.array([1.1, 0.4, 0.1, 0.4, 2.0, 1.0]),
    ),
    "gaussian process": (likelihood, likelihood_functional, np.array([0.2, -0.1, -2.0])),
    "kalman filter": (kalman, kalman_functional, np.array([0.3, 0.8, -2.0, -1.0])),
    "network": (network, network_functional, draw(22)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(jax, names, name):
    ours, theirs, x = PROGRAMS[name]
    beside(jax, names, lambda m, x: ours(x) if m is NUMPY else theirs(m, x), x, rtol=1e-10)


# -- where the conventions differ: our slope (fwdad/rules/policies.md), and JAX's

CONVENTIONS = {
    "a tie": (lambda m, t: m.np.maximum(t, 2 - t), 1.0, 1.0, 0.0),
    "equal extremes": (lambda m, t: m.np.max(m.np.stack([t, 3 * t, t**3])), 0.0, 1.0, 4 / 3),
    "an end of an interval": (lambda m, t: m.np.clip(t, 0.0, 1.0), 1.0, 1.0, 0.5),
    "a norm at zero": (lambda m, t: m.la.norm(m.np.stack([t, 2 * t])), 0.0, 0.0, np.nan),
    "a deviation of zero": (lambda m, t: m.np.std(m.np.stack([t, 2 * t])), 0.0, 0.0, np.nan),
}


@pytest.mark.parametrize("name", CONVENTIONS)
def test_convention(jax, names, name):
    f, at, ours, theirs = CONVENTIONS[name]
    assert_allclose(fwdad.derivative(lambda t: f(NUMPY, t), at), ours)
    assert_allclose(jax.jacfwd(lambda t: f(names, t))(at), theirs, rtol=1e-6)


def test_the_reference_computes_in_double_precision(names):
    assert names.np.ones(1).dtype == np.float64
