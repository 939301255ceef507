"""The names of JAX: each script gives what a formula says, and what JAX gives for it."""

import functools
import importlib
from types import SimpleNamespace

import numpy
import pytest
import scipy

import fwdad
import fwdad.compat.jax
import fwdad.compat.jax.scipy.special
import fwdad.compat.jax.scipy.stats
from fwdad.compat import conventions
from fwdad.compat.jax import flatten_util, lax, nn, test_util
from fwdad.errors import NonScalarOutputError, NotHolomorphicError, UnsupportedTypeError
from tests.compat.alike import assert_alike

OURS = SimpleNamespace(jax=fwdad.compat.jax, np=fwdad.compat.jax.numpy)
X = numpy.array([1.0, 2.0])
Z = numpy.array([1.0 + 2.0j, 3.0j])


@pytest.fixture(scope="module")
def theirs(jax):
    return SimpleNamespace(jax=jax, np=jax.numpy)


def product(m):
    return lambda x, y: m.np.sum(x**3) * y


def pair(m):
    return lambda x, y: {"a": x * y, "b": (m.np.sum(x), y**2)}


def log1pexp(m):
    @m.jax.custom_jvp
    def f(x, y):
        return m.np.log(1.0 + m.np.exp(x)) * y

    @f.defjvp
    def f_jvp(primals, tangents):
        (x, y), (x_dot, y_dot) = primals, tangents
        value = f(x, y)
        return value, (1 - 1 / (1 + m.np.exp(x))) * y * x_dot + value / y * y_dot

    return f


def powers(m):
    """One rule for each argument, and None."""

    @m.jax.custom_jvp
    def f(x, y):
        return x**2 * y

    f.defjvps(lambda x_dot, ans, x, y: 10.0 * x * y * x_dot, None)
    return f


def with_constant(m):
    """A rule that gets a function first, which has no tangent."""

    @functools.partial(m.jax.custom_jvp, nondiff_argnums=(1,))
    def applied(x, f):
        return f(x)

    @applied.defjvp
    def applied_jvp(f, primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return f(x), 10.0 * x_dot

    return applied


def clipped(m):
    @m.jax.custom_vjp
    def f(x, y):
        return m.np.sin(x) * y

    def forward(x, y):
        return f(x, y), (m.np.cos(x), m.np.sin(x), y)

    f.defvjp(forward, lambda r, g: (m.np.clip(r[0] * g * r[2], -0.1, 0.1), r[1] * g))
    return f


def with_constant_reverse(m):
    @functools.partial(m.jax.custom_vjp, nondiff_argnums=(0,))
    def applied(f, x):
        return f(x)

    applied.defvjp(lambda f, x: (f(x), x), lambda f, r, g: (10.0 * g,))
    return applied


def scanned(m):
    """A scan with a structure of xs, one of ys, and a carry."""

    def run(x, r):
        def step(c, z):
            c = c * 0.9 + r * z[0] * z[1]
            return c, (c, {"a": c**2})

        c, ys = m.jax.lax.scan(step, m.np.zeros(()), (x, x[::-1]))
        return c + m.np.sum(ys[0] * ys[1]["a"])

    return run


def by_hand(x, r):
    c, total = 0.0, 0.0
    for a, b in zip(x, x[::-1], strict=True):
        c = c * 0.9 + r * a * b
        total += c * c**2
    return c + total


def backwards(m):
    def run(x):
        def step(c, z):
            return c * z + 1.0, c

        c, ys = m.jax.lax.scan(step, 1.0, x, reverse=True)
        return m.np.sum(ys * m.np.arange(1.0, 3.0)) + c

    return run


def repeated(m):
    def run(x):
        c, ys = m.jax.lax.scan(lambda c, _: (c * x, c), m.np.ones(2), None, length=3)
        return m.np.sum(c) + m.np.sum(ys)

    return run


LOG = numpy.log(1 + numpy.exp(3.0))
SCRIPTS = {
    "grad": (lambda m: m.jax.grad(product(m))(X, 2.0), 6 * X**2),
    "grad, argnums": (lambda m: m.jax.grad(product(m), (0, 1))(X, 2.0), (6 * X**2, 9.0)),
    "grad, one in a tuple": (lambda m: m.jax.grad(product(m), (1,))(X, 2.0), (9.0,)),
    "grad, aux": (
        lambda m: m.jax.grad(lambda x: (m.np.sum(x**2), {"x": x}), has_aux=True)(X),
        (2 * X, {"x": X}),
    ),
    "grad of complex numbers": (
        lambda m: m.jax.grad(lambda z: m.np.sum(m.np.abs(z) ** 2 + m.np.imag(z)))(Z),
        2 * Z.conj() - 1j,
    ),
    "grad, holomorphic": (
        lambda m: m.jax.grad(lambda z: m.np.sum(z**3), holomorphic=True)(Z),
        3 * Z**2,
    ),
    "grad of containers": (
        lambda m: m.jax.grad(lambda p: p["a"] ** 2 * m.np.sum(p["b"][0] * p["b"][1]))(
            {"a": 3.0, "b": [X, 2 * X]}
        ),
        {"a": 60.0, "b": [18.0 * X, 9.0 * X]},
    ),
    "value_and_grad": (
        lambda m: m.jax.value_and_grad(product(m), 1)(X, 2.0),
        (18.0, 9.0),
    ),
    "value_and_grad, aux": (
        lambda m: m.jax.value_and_grad(lambda x: (m.np.sum(x**2), x), has_aux=True)(X),
        ((5.0, X), 2 * X),
    ),
    "jacfwd": (lambda m: m.jax.jacfwd(lambda x: x**3)(X), numpy.diag(3 * X**2)),
    "jacrev": (lambda m: m.jax.jacrev(lambda x: x**3)(X), numpy.diag(3 * X**2)),
    "jacfwd of structures": (
        lambda m: m.jax.jacfwd(pair(m), (0, 1))(X, 2.0),
        {
            "a": (2 * numpy.eye(2), X),
            "b": ((numpy.ones(2), 0.0), (numpy.zeros(2), 4.0)),
        },
    ),
    "jacrev of structures": (
        lambda m: m.jax.jacrev(pair(m), (0, 1))(X, 2.0),
        {
            "a": (2 * numpy.eye(2), X),
            "b": ((numpy.ones(2), 0.0), (numpy.zeros(2), 4.0)),
        },
    ),
    "jacfwd, aux": (
        lambda m: m.jax.jacfwd(lambda x: (x**2, x), has_aux=True)(X),
        (numpy.diag(2 * X), X),
    ),
    "jacfwd, holomorphic": (
        lambda m: m.jax.jacfwd(lambda z: z**2, holomorphic=True)(Z),
        numpy.diag(2 * Z),
    ),
    "jacrev, holomorphic": (
        lambda m: m.jax.jacrev(lambda z: z**2, holomorphic=True)(Z),
        numpy.diag(2 * Z),
    ),
    "hessian": (lambda m: m.jax.hessian(product(m))(X, 2.0), numpy.diag(12 * X)),
    "hessian, argnums": (
        lambda m: m.jax.hessian(product(m), (0, 1))(X, 2.0),
        ((numpy.diag(12 * X), 3 * X**2), (3 * X**2, 0.0)),
    ),
    "hessian of a vector": (
        lambda m: m.jax.hessian(lambda x: x**3)(X),
        6 * X[:, None, None] * numpy.eye(2)[:, :, None] * numpy.eye(2)[:, None, :],
    ),
    "jvp": (
        lambda m: m.jax.jvp(product(m), (X, 2.0), (X, 1.0)),
        (18.0, 54.0 + 9.0),
    ),
    "jvp of a holomorphic function": (
        lambda m: m.jax.jvp(lambda z: z**2, (Z,), (Z.conj(),)),
        (Z**2, 2 * Z * Z.conj()),
    ),
    "jvp, aux": (
        lambda m: m.jax.jvp(lambda x: (x**2, x), (X,), (X,), has_aux=True),
        (X**2, 2 * X**2, X),
    ),
    "vjp": (
        lambda m: (lambda y, pull: (y, pull(1.0)))(*m.jax.vjp(product(m), X, 2.0)),
        (18.0, (6 * X**2, 9.0)),
    ),
    "vjp of structures": (
        lambda m: m.jax.vjp(pair(m), X, 2.0)[1]({"a": X, "b": (1.0, 0.5)}),
        (2 * X + 1, 5.0 + 2.0),
    ),
    "vjp of complex numbers": (
        lambda m: (lambda y, pull: (y, pull(Z)))(*m.jax.vjp(lambda z: z * m.np.conj(z) * z, Z)),
        (Z * Z.conj() * Z, (2 * Z * Z.conj() * Z + (Z * Z * Z).conj(),)),
    ),
    "vjp, aux": (
        lambda m: (lambda y, pull, aux: (y, pull(X), aux))(
            *m.jax.vjp(lambda x: (x**2, x), X, has_aux=True)
        ),
        (X**2, (2 * X**2,), X),
    ),
    "linearize": (
        lambda m: (lambda y, push: (y, push(X, 1.0)))(*m.jax.linearize(product(m), X, 2.0)),
        (18.0, 63.0),
    ),
    "jit": (
        lambda m: m.jax.jit(lambda x, n: x**n, static_argnums=1)(X, 3),
        X**3,
    ),
    "checkpoint": (
        lambda m: m.jax.grad(m.jax.checkpoint(lambda x: m.np.sin(m.np.sin(x))))(1.0),
        numpy.cos(numpy.sin(1.0)) * numpy.cos(1.0),
    ),
    "custom_jvp": (
        lambda m: m.jax.grad(log1pexp(m), (0, 1))(3.0, 2.0),
        (2 * scipy.special.expit(3.0), LOG),
    ),
    "custom_jvp, one argument": (
        lambda m: m.jax.grad(log1pexp(m))(1000.0, 2.0),
        2.0,
    ),
    "custom_jvp, hessian": (
        lambda m: m.jax.hessian(log1pexp(m))(3.0, 2.0),
        2 * scipy.special.expit(3.0) * (1 - scipy.special.expit(3.0)),
    ),
    "custom_jvp, defjvps": (lambda m: m.jax.grad(powers(m), (0, 1))(3.0, 2.0), (60.0, 0.0)),
    "custom_jvp, constants": (
        lambda m: (lambda f: m.jax.grad(lambda x: f(x, m.np.sin))(1.0))(with_constant(m)),
        10.0,
    ),
    "custom_vjp": (
        lambda m: m.jax.grad(clipped(m), (0, 1))(3.0, 2.0),
        (-0.1, numpy.sin(3.0)),
    ),
    "custom_vjp, constants": (
        lambda m: (lambda f: m.jax.grad(lambda x: f(m.np.sin, x))(1.0))(with_constant_reverse(m)),
        10.0,
    ),
    "stop_gradient": (
        lambda m: m.jax.grad(lambda x: x * m.jax.lax.stop_gradient(x))(3.0),
        3.0,
    ),
    "fori_loop": (
        lambda m: m.jax.grad(lambda x: m.jax.lax.fori_loop(0, 5, lambda i, v: v * x + i, 1.0))(2.0),
        5 * 2**4 + 3 * 2**2 + 2 * 2 * 2 + 3,
    ),
    "while_loop": (
        lambda m: m.jax.jvp(
            lambda x: m.jax.lax.while_loop(lambda v: v < 100.0, lambda v: v * x, x), (2.0,), (1.0,)
        ),
        (128.0, 7 * 64.0),
    ),
    "scan": (lambda m: scanned(m)(X, 2.0), by_hand(X, 2.0)),
    "scan, reversed": (
        lambda m: m.jax.grad(backwards(m))(X),
        numpy.array([3.0, 2.0]),
    ),
    "scan, length": (
        lambda m: m.jax.grad(repeated(m))(2.0),
        2 * (3 * 4.0) + 2 * (1 + 2 * 2.0),
    ),
    "map": (lambda m: m.jax.grad(lambda x: m.np.sum(m.jax.lax.map(lambda v: v**2, x)))(X), 2 * X),
    "cond": (
        lambda m: m.jax.grad(lambda x: m.jax.lax.cond(x > 0, lambda v: v**2, lambda v: -v, x))(3.0),
        6.0,
    ),
    "cond, other way": (
        lambda m: m.jax.grad(lambda x: m.jax.lax.cond(x > 0, lambda v: v**2, lambda v: -v, x))(
            -3.0
        ),
        -1.0,
    ),
    "switch": (
        lambda m: [
            m.jax.lax.switch(k, [lambda v: v, lambda v: v**2, lambda v: v**3], 3.0)
            for k in (-1, 0, 1, 2, 7)
        ],
        [3.0, 3.0, 9.0, 27.0, 27.0],
    ),
    "select": (
        lambda m: m.jax.grad(lambda x: m.np.sum(m.jax.lax.select(x > 1.5, x**2, 3 * x)))(X),
        numpy.array([3.0, 4.0]),
    ),
    "derivatives inside a function": (
        lambda m: m.jax.grad(
            lambda y: (
                m.np.sum(m.jax.jacfwd(lambda x: x**3 * y)(X))
                + m.np.sum(m.jax.vjp(lambda x: x**3 * y, X)[1](X)[0])
                + m.np.sum(m.jax.jvp(lambda x: x**3 * y, (X,), (X,))[1])
                + m.np.sum(m.jax.hessian(lambda x: m.np.sum(x**3) * y)(X))
            )
        )(2.0),
        2 * numpy.sum(3 * X**2 / 2) + numpy.sum(6 * X**3) + numpy.sum(6 * X),
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts(name):
    script, wanted = SCRIPTS[name]
    assert_alike(script(OURS), wanted)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_under_jax(theirs, name):
    script, wanted = SCRIPTS[name]
    assert_alike(script(theirs), wanted)


def slope(m, f, x):
    return m.jax.grad(lambda x: m.np.sum(f(x) * m.np.arange(1.0, 1.0 + len(x))))(x)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({*nn.__all__} - {"one_hot"}))
def test_activations_beside_jax(theirs, name):
    x = numpy.array([-30.0, -1.5, 0.0, 0.5, 30.0])
    if name in ("softplus", "log_sigmoid", "silu", "swish", "gelu"):  # ties of overflow aside
        x = numpy.array([-3.0, -1.5, 0.0, 0.5, 3.0])
    ours, others = getattr(nn, name), getattr(theirs.jax.nn, name)
    assert_alike(ours(x), numpy.asarray(others(x)), 1e-10, 1e-14)
    if name == "logsumexp":
        ours, others = (
            (lambda f: lambda x: f(x) + 0 * x)(ours),
            (lambda x: theirs.jax.nn.logsumexp(x) + 0 * x),
        )
    assert_alike(slope(OURS, ours, x), numpy.asarray(slope(theirs, others, x)), 1e-10, 1e-14)


@pytest.mark.filterwarnings("ignore")
def test_one_hot_beside_jax(theirs):
    k = numpy.array([2, 0, 5])
    assert_alike(nn.one_hot(k, 3), numpy.asarray(theirs.jax.nn.one_hot(k, 3)))


UPDATES = {
    "set": lambda at, x: at(x)[1].set(x[0] ** 2),
    "add": lambda at, x: at(x)[numpy.array([0, 0])].add(x[1] ** 2),
    "multiply": lambda at, x: at(x)[1:].multiply(x[0]),
    "divide": lambda at, x: at(x)[1:].divide(x[0] + 1.0),
    "power": lambda at, x: at(x)[1].power(3.0),
    "min": lambda at, x: at(x)[1].min(x[0] * 1.5),
    "max": lambda at, x: at(x)[1].max(x[0] * 1.5),
    "apply": lambda at, x: at(x)[1:].apply(numpy.sin),
    "get": lambda at, x: at(x)[1:].get(),
}


@pytest.mark.parametrize("name", UPDATES)
def test_updates(name):
    update = UPDATES[name]
    x = numpy.array([1.0, 2.0, 0.5])
    J = OURS.jax.jacfwd(lambda x: update(OURS.jax.at, x))(x)
    step = 1e-6 * numpy.eye(3)
    differences = [(update(OURS.jax.at, x + h) - update(OURS.jax.at, x - h)) / 2e-6 for h in step]
    assert_alike(J, numpy.array(differences).T, 1e-8, 1e-9)
    assert list(x) == [1.0, 2.0, 0.5]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n in UPDATES if n != "apply"])
def test_updates_beside_jax(theirs, name):
    x = numpy.array([1.0, 2.0, 0.5])
    theirs_at = lambda x: theirs.np.asarray(x).at  # noqa: E731
    assert_alike(UPDATES[name](OURS.jax.at, x), numpy.asarray(UPDATES[name](theirs_at, x)))


@pytest.mark.parametrize("name", ["scan", "reversed", "length", "fori", "cond", "grad", "vjp"])
def test_scripts_compile(name):
    programs = {
        "scan": (lambda x: scanned(OURS)(x, 2.0), X),
        "reversed": (backwards(OURS), X),
        "length": (repeated(OURS), 2.0),
        "fori": (lambda x: lax.fori_loop(0, 5, lambda i, v: v * x + i, 1.0), 2.0),
        "cond": (lambda x: lax.cond(x > 0, lambda v: v**2, lambda v: -v, x), 3.0),
        "grad": (lambda x: numpy.sum(fwdad.compat.jax.grad(product(OURS))(x, 2.0)), X),
        "vjp": (lambda x: numpy.sum(fwdad.compat.jax.vjp(lambda x: x**3, x)[1](x)[0]), X),
    }
    f, x = programs[name]
    found = fwdad.jit(fwdad.compat.jax.grad(f), backend="numpy")(x)
    assert_alike(found, fwdad.compat.jax.grad(f)(x))


def test_a_compiled_scan_serves_all_lengths():
    slope = fwdad.jit(fwdad.compat.jax.grad(scanned(OURS)), backend="numpy")
    slope(X, 2.0)
    slope(numpy.ones(20), 2.0)
    assert fwdad.cache_info(slope).traces == 1


def test_settings():
    fwdad.compat.jax.config.update("jax_enable_x64", True)
    assert isinstance(fwdad.compat.jax.block_until_ready(X), fwdad.compat.jax.Array)


def test_a_scan_of_nothing():
    carry, ys = lax.scan(lambda c, x: (c + x, c), 1.0, numpy.zeros(0))
    assert (carry, ys) == (1.0, None)
    assert lax.map(lambda x: x, numpy.zeros(0)) is None


TREE = {"b": [1.0, numpy.ones((2, 2))], "a": (3.0, {"d": X, "c": 2.0}), "n": None}


def trees(tree, ravel_pytree):
    vector, unravel = ravel_pytree(TREE)
    return {
        "doubled": tree.map(lambda x: 2 * x, TREE),
        "sums": tree.map(lambda x, y, z: x + y + z, TREE, TREE, TREE),
        "ints": tree.map(lambda n: n + 1, (1, [2])),
        "leaves": tree.leaves(TREE),
        "vector": vector,
        "unravelled": unravel(2 * vector),
    }


def test_trees():
    found = trees(fwdad.compat.jax.tree, flatten_util.ravel_pytree)
    doubled = {"b": [2.0, 2 * numpy.ones((2, 2))], "a": (6.0, {"d": 2 * X, "c": 4.0}), "n": None}
    assert_alike(found["doubled"], doubled)
    assert_alike(found["leaves"], [3.0, 2.0, X, 1.0, numpy.ones((2, 2))])
    assert_alike(found["vector"], numpy.array([3.0, 2.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0]))
    assert found["ints"] == (2, [3])


@pytest.mark.filterwarnings("ignore")
def test_trees_beside_jax(theirs):
    others = importlib.import_module("jax.flatten_util").ravel_pytree
    found = trees(fwdad.compat.jax.tree, flatten_util.ravel_pytree)
    wanted = trees(theirs.jax.tree, others)
    for key in wanted:
        assert_alike(sorted_keys(found[key]), sorted_keys(wanted[key]))


def sorted_keys(tree):
    if isinstance(tree, dict):
        return {key: sorted_keys(tree[key]) for key in sorted(tree)}
    return type(tree)(map(sorted_keys, tree)) if isinstance(tree, (tuple, list)) else tree


def test_check_grads():
    test_util.check_grads(lambda x, y: x * y, (X, X), 2)
    test_util.check_grads(numpy.sin, X, 1, modes=("rev",), eps=1e-4)
    with pytest.raises(AssertionError, match="off by"):
        test_util.check_grads(lambda x: fwdad.stop_gradient(x) * x, (X,), 1)


def test_numpy_is_numpy():
    import fwdad.compat.jax.numpy as jnp  # noqa: PLC0415  (as scripts do)
    import fwdad.compat.jax.numpy.fft  # noqa: PLC0415
    import fwdad.compat.jax.numpy.linalg  # noqa: PLC0415
    import fwdad.compat.jax.scipy.integrate  # noqa: PLC0415
    import fwdad.compat.jax.scipy.linalg  # noqa: PLC0415
    import fwdad.compat.jax.scipy.signal  # noqa: PLC0415

    assert jnp.sin is numpy.sin
    assert jnp.abs is numpy.abs
    assert jnp.linalg.solve is numpy.linalg.solve
    assert jnp.fft.fft is numpy.fft.fft
    assert fwdad.compat.jax.scipy.stats.norm is scipy.stats.norm
    assert fwdad.compat.jax.scipy.special.expit is scipy.special.expit
    assert fwdad.compat.jax.scipy.linalg.expm is scipy.linalg.expm
    assert fwdad.compat.jax.scipy.signal.convolve is scipy.signal.convolve
    assert fwdad.compat.jax.scipy.integrate.trapezoid is scipy.integrate.trapezoid


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (NonScalarOutputError, "jacobian", lambda j: j.grad(lambda x: x[:1] ** 2)(X)),
        (NonScalarOutputError, "one number", lambda j: j.grad(lambda z: z, holomorphic=True)(Z)),
        (
            NotHolomorphicError,
            "hold",
            lambda j: j.grad(lambda z: abs(z) + 0j, holomorphic=True)(1j),
        ),
        (NotHolomorphicError, "holomorphic=True", lambda j: j.jacrev(lambda z: z)(Z)),
        (NotHolomorphicError, "conjugate", lambda j: j.jvp(numpy.conj, (Z,), (Z,))),
        (UnsupportedTypeError, "Write 3.0", lambda j: j.grad(lambda x: x**2)(3)),
        (UnsupportedTypeError, "tuple of arguments", lambda j: j.jvp(numpy.sin, X, X)),
        (UnsupportedTypeError, "2 tangents for 1", lambda j: j.jvp(numpy.sin, (X,), (X, X))),
        (UnsupportedTypeError, "of your own", lambda j: j.custom_jvp(numpy.sin)),
        (ValueError, "by position", lambda j: clipped_variadic(j)),
        (
            NotImplementedError,
            "value_and_jacobian",
            lambda j: j.value_and_grad(abs, holomorphic=True),
        ),
        (NotImplementedError, "snapshots", lambda j: j.checkpoint(abs, policy=print)),
        (NotImplementedError, "loop", lambda j: j.vmap(numpy.sin, axis_name="i")),
        (NotImplementedError, "parallel=True", lambda j: j.pmap(numpy.sin)),
        (NotImplementedError, "cumsum", lambda j: lax.associative_scan(numpy.add, X)),
        (NotImplementedError, "float32", lambda j: j.config.update("jax_enable_x64", False)),
        (NotImplementedError, "take the line out", lambda j: j.config.update("jax_debug_nans", 1)),
        (AttributeError, "jax.devices has no", lambda j: j.devices()),
        (NotImplementedError, "ravel", lambda j: j.tree_util.tree_flatten(X)),
        (AttributeError, "default_rng", lambda j: fwdad.compat.jax.random.PRNGKey(0)),
        (AttributeError, "no such name", lambda j: fwdad.compat.jax.numpy.bfloat16),
        (AttributeError, "NumPy", lambda j: lax.add),
        (AttributeError, "NumPy", lambda j: nn.mish),
    ],
)
def test_refusals(error, words, call):
    with pytest.raises(error, match=words):
        call(fwdad.compat.jax)


def clipped_variadic(j):
    made = j.custom_vjp(lambda *xs: xs[0])
    made.defvjp(lambda *xs: (xs[0], None), lambda r, g: (g,))


def test_many_points():
    jax, points = fwdad.compat.jax, numpy.stack([X, 2 * X])

    def f(x, s):
        return numpy.sum(numpy.sin(x)) * s

    for make in (lambda g: g, jax.jit):
        found = make(jax.vmap(jax.grad(f), in_axes=(0, None)))(points, 3.0)
        numpy.testing.assert_allclose(found, 3.0 * numpy.cos(points))


def test_a_custom_rule_leaves_its_function_alone():
    def f(x):
        return x**2

    twin = fwdad.compat.jax.custom_vjp(f)
    twin.defvjp(lambda x: (x**2, x), lambda x, g: (100.0 * g,))
    assert fwdad.grad(twin)(3.0) == 100.0
    assert fwdad.grad(f)(3.0) == 6.0


def test_real_gradients_are_handed_on_as_they_are():
    """A copy of a structure of real numbers would cost ten times the gradient's own overhead."""
    for x in (1.0, numpy.float64(2.0), X, {"a": (X, 1.0), "b": [X]}):
        assert conventions.conjugate(x) is x
    tree = conventions.conjugate({"a": (X, 1.0), "b": [Z]})
    assert tree["a"][0] is X
    numpy.testing.assert_array_equal(tree["b"][0], Z.conj())
