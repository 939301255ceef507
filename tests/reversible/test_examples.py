"""The examples, each against something independent of it."""

import tracemalloc

import mpmath
import numpy as np
import pytest
import scipy.sparse
import scipy.special

import fwdad
from fwdad.examples.reversible.bessel import bessel
from fwdad.examples.reversible.coupling import layers, negative_log_density, two_moons
from fwdad.examples.reversible.embedding import embedding, petersen
from fwdad.examples.reversible.mixture import mixture
from fwdad.examples.reversible.orbits import leapfrog
from fwdad.examples.reversible.sparse import sparse_dot, sparse_product
from fwdad.examples.reversible.wave import wave
from fwdad.reversible import Logarithmic, check_gradient, check_inverse, reversible

RNG = np.random.default_rng(3)


def parts(a):
    a = scipy.sparse.csc_array(a)
    a.sort_indices()
    return a.data, a.indices.astype(np.int64), a.indptr.astype(np.int64)


def test_sparse_dot():
    a = scipy.sparse.random_array((30, 20), density=0.3, random_state=RNG, format="csc")
    b = scipy.sparse.random_array((30, 20), density=0.3, random_state=RNG, format="csc")
    args = (0.5, *parts(a), *parts(b))
    np.testing.assert_allclose(sparse_dot(*args)[0], 0.5 + a.multiply(b).sum(), rtol=1e-13)
    assert check_inverse(sparse_dot, *args) < 1e-12
    gradient = fwdad.grad(sparse_dot, argnums=1)(*args)
    expected = b.toarray()[a.toarray() != 0]
    found = scipy.sparse.csc_array((gradient, *parts(a)[1:]), shape=a.shape).toarray()
    np.testing.assert_allclose(found[a.toarray() != 0], expected, rtol=1e-14)


@pytest.mark.parametrize("complex_", [False, True])
def test_sparse_product(complex_):
    a = scipy.sparse.random_array((12, 9), density=0.4, random_state=RNG, format="csc")
    x = RNG.normal(size=9)
    if complex_:
        a, x = a * (1.0 - 0.5j), x + 1j * RNG.normal(size=9)
    y = np.zeros(12, a.dtype)
    data, rows, starts = parts(a)
    there = sparse_product(y, data, rows, starts, x)
    np.testing.assert_allclose(there[0], a @ x, rtol=1e-13)
    np.testing.assert_allclose((~sparse_product)(*there)[0], y, atol=1e-14)

    def loss(data, x):
        y_new = sparse_product(y, data, rows, starts, x)[0]
        return np.sum((y_new * np.conj(y_new)).real)

    by_data, by_x = fwdad.grad(loss, argnums=(0, 1))(data, x)
    y_bar = 2 * (a @ x)
    np.testing.assert_allclose(by_x, np.conj(a.T) @ y_bar, rtol=1e-12)
    columns = np.repeat(np.arange(9), np.diff(starts))
    np.testing.assert_allclose(by_data, np.conj(x[columns]) * y_bar[rows], rtol=1e-12)


def loss_of_layout(x, edges, others):
    def squares(pairs):
        return ((x[pairs[:, 0]] - x[pairs[:, 1]]) ** 2).sum(axis=1)

    near, far = squares(edges), squares(others)
    penalty = np.exp(near.mean() - far.mean() + 0.1)
    return near.var(ddof=1) + far.var(ddof=1) + penalty


@pytest.mark.parametrize("k", [2, 6])
def test_embedding(k):
    edges, others = petersen()
    assert (edges.shape, others.shape) == ((15, 2), (30, 2))
    assert np.all(np.bincount(edges.ravel()) == 3)
    x = RNG.normal(size=(10, k))
    pairs = (edges, others)
    np.testing.assert_allclose(embedding(0.0, x, *pairs)[0], loss_of_layout(x, *pairs), rtol=1e-13)
    gradient = fwdad.grad(embedding, argnums=1)(0.0, x, *pairs)
    expected = fwdad.jacobian(loss_of_layout, x, args=pairs)
    np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-11)
    assert check_inverse(embedding, 0.5, x, *pairs) < 1e-10


def test_hessian_of_the_embedding():
    edges, others = petersen()
    x = RNG.normal(size=(10, 2))
    found = fwdad.hessian(lambda x: embedding(0.0, x, edges, others)[0], x, chunk=7)
    expected = fwdad.jacobian(fwdad.jacfwd(loss_of_layout), x, args=(edges, others))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def log_likelihood(alphas, means, factors, x):
    n, d = x.shape
    total = 0.0
    terms = []
    for k in range(len(alphas)):
        q = np.diag(np.exp(factors[k, :d]))
        at = d
        for b in range(d):
            for a in range(b + 1, d):
                q[a, b] = factors[k, at]
                at += 1
        moved = (x - means[k]) @ q.T
        terms.append(alphas[k] + factors[k, :d].sum() - 0.5 * (moved**2).sum(axis=1))
        total -= 0.5 * (q**2).sum()
    total += scipy.special.logsumexp(np.array(terms), axis=0).sum()
    return total - n * scipy.special.logsumexp(alphas)


def test_mixture():
    d, count = 3, 4
    args = (
        RNG.normal(size=count),
        RNG.normal(size=(count, d)),
        0.3 * RNG.normal(size=(count, d + d * (d - 1) // 2)),
        RNG.normal(size=(6, d)),
    )
    np.testing.assert_allclose(mixture(0.0, *args)[0], log_likelihood(*args), rtol=1e-12)
    assert check_gradient(mixture, 0.0, *args) < 1e-8
    gradient = fwdad.grad(mixture, argnums=3)(0.0, *args)
    expected = fwdad.jacobian(lambda f: mixture(0.0, args[0], args[1], f, args[3])[0], args[2])
    np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-11)


ORBIT = (
    np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.5]]),
    np.array([[0.0, -0.01], [0.0, 1.0], [-0.6, 0.0]]),
    np.array([1.0, 1e-3, 2e-3]),
    0.01,
)


def energy(x, v, m):
    kinetic = 0.5 * np.sum(m[:, None] * v**2)
    pairs = [(i, j) for i in range(len(m)) for j in range(i)]
    return kinetic - sum(m[i] * m[j] / np.sqrt(np.sum((x[i] - x[j]) ** 2)) for i, j in pairs)


def test_leapfrog():
    x, v, m, h = ORBIT
    new_x, new_v, *_ = leapfrog(x, v, m, h, 200)
    assert abs(energy(new_x, new_v, m) / energy(x, v, m) - 1) < 1e-5
    assert check_inverse(leapfrog, x, v, m, h, 200, rtol=1e-9) < 1e-9

    def distance(v):
        return np.sum(leapfrog(x, v, m, h, 40)[0][1] ** 2)

    np.testing.assert_allclose(fwdad.grad(distance)(v), fwdad.jacobian(distance, v), rtol=1e-8)


def test_leapfrog_needs_the_same_memory_for_any_number_of_steps():
    x, v, m, h = ORBIT
    tape = fwdad.trace(fwdad.grad(lambda v, n: leapfrog(x, v, m, h, n)[0][1, 0]), v, 10)
    shown = str(tape)
    assert "stack" not in shown
    assert "push" not in shown


def test_wave():
    n, steps = 41, 60
    c = np.full(n, 0.25)
    grid = np.linspace(0.0, 1.0, n)
    start = np.sin(np.pi * grid)
    start[-1] = 0.0
    # a standing wave: each step multiplies the mode by a known rotation
    angle = 2 * np.arcsin(0.5 * np.sin(np.pi / (2 * (n - 1))))
    u, _, *_ = wave(start, start * np.cos(angle), c, steps)
    np.testing.assert_allclose(u, start * np.cos(steps * angle), atol=1e-12)
    assert check_inverse(wave, start, 0.9 * start, c, steps, rtol=1e-8, atol=1e-12) < 1e-6

    def loss(c):
        return np.sum(wave(start, start, c, steps)[0][:10] ** 2)

    np.testing.assert_allclose(fwdad.grad(loss)(c), fwdad.jacobian(loss, c), rtol=1e-9, atol=1e-12)


def test_bessel():
    for nu, z in ((2.0, 1.0), (0.5, 3.0)):
        y, *_ = bessel(0.0, nu, z, 30)
        np.testing.assert_allclose(y, float(mpmath.besselj(nu, z)), rtol=1e-12)
        slope = fwdad.grad(bessel, argnums=2)(0.0, nu, z, 30)
        np.testing.assert_allclose(slope, float(mpmath.besselj(nu, z, 1)), rtol=1e-11)


def test_coupling_layers():
    points = two_moons(40, RNG)
    weights = [0.5 * RNG.normal(size=(4, 5)) for _ in range(3)]
    there = layers(points, *weights)
    np.testing.assert_allclose((~layers)(*there)[0], points, rtol=1e-13, atol=1e-14)
    one = fwdad.jacobian(lambda z: layers(z[None], *weights)[0][0], points[0])
    np.testing.assert_allclose(np.linalg.det(one), 1.0, rtol=1e-13)
    scales = np.array([0.1, -0.2])

    def loss(w, s):
        return negative_log_density(0.0, points, *w, s)[0]

    gradient, by_scale = fwdad.grad(loss, argnums=(0, 1))(tuple(weights), scales)
    forward, scale_forward = fwdad.jacfwd(loss, argnums=(0, 1))(tuple(weights), scales)
    for a, b in zip(gradient, forward, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(by_scale, scale_forward, rtol=1e-11)


@reversible
def power(y, x, n):
    for _ in range(n):
        y *= x


def peak(call):
    call()
    tracemalloc.start()
    call()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def test_peaks_are_flat():
    """``tracemalloc`` sees the memory of NumPy, and of compiled code."""
    one, base = Logarithmic(1.0), Logarithmic(1.01)
    x, v, m, h = ORBIT

    def last(v, steps):
        return leapfrog(x, v, m, h, steps)[0][1, 0]

    def kept(v, steps):  # the same steps as an ordinary loop: memory that grows is seen
        y = v
        for _ in range(steps):
            y = np.sin(y) * y
        return np.sum(y)

    compiled, grows = (fwdad.jit(fwdad.grad(f)) for f in (last, kept))
    products = fwdad.jit(fwdad.grad(power, argnums=1), backend="numpy")
    for run, allowed in (
        (lambda n: compiled(v, n), 1.05),
        (lambda n: products(one, base, n // 10), 1.05),
        (lambda n: power(one, base, n // 10), 1.05),
    ):
        few, many = (peak(lambda n=n, run=run: run(n)) for n in (1000, 10_000))
        assert many <= allowed * few + 500  # bytes: few are 2,400, in which Python's own count
    few, many = (peak(lambda n=n: grows(v, n)) for n in (1000, 10_000))
    assert many > 5 * few
