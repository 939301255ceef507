"""The names of autograd: each script gives what a formula says, and what autograd gives for it."""

import importlib
import pickle
from types import SimpleNamespace

import numpy
import pytest

import fwdad
import fwdad.compat.autograd
from fwdad.compat.autograd import test_util, transforms
from fwdad.compat.autograd.misc import optimizers
from fwdad.errors import (
    MissingTransposeError,
    NonScalarOutputError,
    NotHolomorphicError,
    UnsupportedTypeError,
)
from tests.compat.alike import assert_alike

misc_flatten = importlib.import_module("fwdad.compat.autograd.misc.flatten")
OURS = SimpleNamespace(
    ad=fwdad.compat.autograd,
    np=fwdad.compat.autograd.numpy,
    extend=fwdad.compat.autograd.extend,
)
X = numpy.array([1.0, 2.0])
Z = numpy.array([1.0 + 2.0j, 3.0j])
OUTER = X[:, None, None] * numpy.eye(2)[None] + X[None, :, None] * numpy.eye(2)[:, None]


@pytest.fixture(scope="module")
def theirs():
    ad = pytest.importorskip("autograd")
    extend = pytest.importorskip("autograd.extend")
    return SimpleNamespace(ad=ad, np=pytest.importorskip("autograd.numpy"), extend=extend)


def cubes(m):
    return lambda x: m.np.sum(x**3)


def product(m):
    return lambda x, y: m.np.sum(x**3 * y)


def params(m):
    return lambda p: p["a"] ** 2 * m.np.sum(p["b"][0] * p["b"][1])


PARAMS = {"a": 3.0, "b": [X, 2 * X]}
# a script, and what it should give
SCRIPTS = {
    "grad": (lambda m: m.ad.grad(cubes(m))(X), 3 * X**2),
    "grad of a number": (lambda m: m.ad.grad(m.np.sin)(1.0), numpy.cos(1.0)),
    "grad, argnum": (lambda m: m.ad.grad(product(m), 1)(X, X), X**3),
    "grad, last argument": (lambda m: m.ad.grad(product(m), -1)(X, X), X**3),
    "grad, argnums": (lambda m: m.ad.grad(product(m), (0, 1))(X, X), (3 * X**3, X**3)),
    "grad, list of argnums": (lambda m: m.ad.grad(product(m), [1, 0])(X, X), (X**3, 3 * X**3)),
    "grad, keyword": (lambda m: m.ad.grad(lambda x, b=2.0: x * b)(1.0, b=3.0), 3.0),
    "grad of containers": (
        lambda m: m.ad.grad(params(m))(PARAMS),
        {"a": 6.0 * 10.0, "b": [9.0 * 2 * X, 9.0 * X]},
    ),
    "grad of one element": (lambda m: m.ad.grad(lambda x: x[:1] ** 2)(X), numpy.array([2.0, 0.0])),
    "grad of a constant": (lambda m: m.ad.grad(lambda x: 3.0)(X), numpy.zeros(2)),
    "grad of complex numbers": (
        lambda m: m.ad.grad(lambda z: m.np.sum(m.np.abs(z) ** 2 + m.np.imag(z)))(Z),
        2 * Z.conj() - 1j,
    ),
    "grad of grad": (
        lambda m: m.ad.grad(lambda x: m.np.sum(m.ad.grad(cubes(m))(x) ** 2))(X),
        36 * X**3,
    ),
    "value_and_grad": (lambda m: m.ad.value_and_grad(cubes(m))(X), (9.0, 3 * X**2)),
    "value_and_grad of one element": (
        lambda m: m.ad.value_and_grad(lambda x: x[:1] ** 2)(X),
        (numpy.ones(1), numpy.array([2.0, 0.0])),
    ),
    "grad_and_aux": (
        lambda m: m.ad.grad_and_aux(lambda x: (m.np.sum(x**2), 2 * x))(X),
        (2 * X, 2 * X),
    ),
    "grad_named": (lambda m: m.ad.grad_named(lambda a, b: m.np.sum(a * b), "b")(X, 3 * X), X),
    "elementwise_grad": (lambda m: m.ad.elementwise_grad(m.np.sin)(X), numpy.cos(X)),
    "elementwise_grad twice": (
        lambda m: m.ad.elementwise_grad(m.ad.elementwise_grad(lambda x: m.np.sin(x)))(X),
        -numpy.sin(X),
    ),
    "elementwise_grad of a matrix": (
        lambda m: m.ad.elementwise_grad(lambda x: m.np.outer(x, x))(X),
        numpy.full(2, 6.0),
    ),
    "jacobian": (lambda m: m.ad.jacobian(lambda x: x**3)(X), numpy.diag(3 * X**2)),
    "jacobian of a matrix": (lambda m: m.ad.jacobian(lambda x: m.np.outer(x, x))(X), OUTER),
    "jacobian, argnum": (lambda m: m.ad.jacobian(lambda x, y: x * y, 1)(X, X), numpy.diag(X)),
    "hessian": (lambda m: m.ad.hessian(cubes(m))(X), numpy.diag(6 * X)),
    "hessian, argnum": (lambda m: m.ad.hessian(product(m), 0)(X, X), numpy.diag(6 * X**2)),
    "hessian of a vector": (
        lambda m: m.ad.hessian(lambda x: x**3)(X),
        6 * X[:, None, None] * numpy.eye(2)[:, :, None] * numpy.eye(2)[:, None, :],
    ),
    "hessian_vector_product": (
        lambda m: m.ad.hessian_vector_product(product(m))(X, X, X),
        6 * X**3,
    ),
    "vector_jacobian_product": (
        lambda m: m.ad.vector_jacobian_product(lambda x: m.np.outer(x, x))(X, numpy.eye(2)),
        2 * X,
    ),
    "tensor_jacobian_product": (
        lambda m: m.ad.tensor_jacobian_product(lambda x: m.np.outer(x, x))(X, X),
        numpy.tensordot(X, OUTER, 1),
    ),
    "make_vjp": (
        lambda m: (lambda pull, y: (y, pull(X)))(*m.ad.make_vjp(lambda x: x**2)(X)),
        (X**2, 2 * X**2),
    ),
    "make_vjp of complex numbers": (
        lambda m: (lambda pull, y: (y, pull(Z)))(*m.ad.make_vjp(lambda z: z * m.np.conj(z) * z)(Z)),
        (Z * Z.conj() * Z, 2 * Z * Z.conj() * Z + (Z * Z * Z).conj()),
    ),
    "make_jvp": (lambda m: m.ad.make_jvp(lambda x: x**2)(X)(3 * X), (X**2, 6 * X**2)),
    "make_jvp of a holomorphic function": (
        lambda m: m.ad.make_jvp(lambda z: z**2)(Z)(Z.conj()),
        (Z**2, 2 * Z * Z.conj()),
    ),
    "make_jvp, argnums": (
        lambda m: m.ad.make_jvp(lambda x, y: x * y, (0, 1))(X, X)((X, 2 * X)),
        (X**2, 3 * X**2),
    ),
    "make_hvp": (
        lambda m: (lambda hvp, g: (g, hvp(X)))(*m.ad.make_hvp(cubes(m))(X)),
        (3 * X**2, 6 * X**2),
    ),
    "make_ggnvp": (lambda m: m.ad.make_ggnvp(lambda x: x**2)(X)(X), 4 * X**3),
    "make_ggnvp of a loss": (
        lambda m: m.ad.make_ggnvp(lambda x: x**2, lambda y: m.np.sum(y**3))(X)(X),
        2 * X * 6 * X**2 * 2 * X * X,
    ),
    "deriv": (lambda m: m.ad.deriv(lambda x: m.np.outer(x, x))(X), X[:, None] + X[None, :]),
    "holomorphic_grad": (
        lambda m: m.ad.holomorphic_grad(lambda z: m.np.sum(z**3))(Z),
        3 * Z**2,
    ),
    "checkpoint": (
        lambda m: m.ad.grad(m.ad.checkpoint(lambda x: m.np.sin(m.np.sin(x))))(1.0),
        numpy.cos(numpy.sin(1.0)) * numpy.cos(1.0),
    ),
    "derivatives inside a function": (
        lambda m: m.ad.grad(
            lambda y: (
                m.np.sum(m.ad.jacobian(lambda x: x**3 * y)(X))
                + m.np.sum(m.ad.make_vjp(lambda x: x**3 * y)(X)[0](X))
                + m.np.sum(m.ad.elementwise_grad(lambda x: x**3 * y)(X))
                + m.np.sum(m.ad.hessian_vector_product(lambda x: m.np.sum(x**3) * y)(X, X))
            )
        )(2.0),
        2 * numpy.sum(3 * X**2) + numpy.sum(3 * X**3) + numpy.sum(6 * X**2),
    ),
}


def logsumexp(m):
    """A primitive with a rule for each of two arguments, of which one has a default."""

    @m.extend.primitive
    def scaled(x, y=1.0):
        return numpy.log(numpy.sum(numpy.exp(x))) * y

    m.extend.defvjp(
        scaled,
        lambda ans, x, y=1.0: lambda g: g * y * m.np.exp(x) / m.np.sum(m.np.exp(x)),
        lambda ans, x, y=1.0: lambda g: g * ans / y,
    )
    return scaled


P = numpy.exp(X) / numpy.sum(numpy.exp(X))
LSE = numpy.log(numpy.sum(numpy.exp(X)))


def with_options(m):
    @m.extend.primitive
    def scaled(x, factor, power=1, *rest, shift=0.0):
        return numpy.array([factor * v**power for v in x]) + shift

    def pull(ans, x, factor, power=1, *rest, shift=0.0):
        return lambda g: g * factor * power * x ** (power - 1)

    m.extend.defvjp(scaled, pull, argnums=(0,))
    return scaled


def forward_only(m):
    @m.extend.primitive
    def product(x, y):
        return x * y

    m.extend.defjvp(product, lambda g, ans, x, y: g * y, "same")
    return product


def by_number(m):
    @m.extend.primitive
    def product(x, y):
        return x * y

    m.extend.defvjp_argnum(product, lambda k, ans, args, kwargs: lambda g: g * args[1 - k])
    m.extend.defjvp_argnum(product, lambda k, g, ans, args, kwargs: g * args[1 - k])
    return product


def together(m):
    @m.extend.primitive
    def product(x, y):
        return x * y

    def pull(argnums, ans, args, kwargs):
        return lambda g: tuple(g * args[1 - k] for k in argnums)

    m.extend.defvjp_argnums(product, pull)
    return product


def without_slope(m):
    @m.extend.primitive
    def scaled(x, y):
        return x * y

    m.extend.defvjp(scaled, None, lambda ans, x, y: lambda g: g * x)
    return scaled


def complex_rule(m):
    @m.extend.primitive
    def f(z):
        return z * numpy.conj(z) * z

    m.extend.defvjp(f, lambda ans, z: lambda g: 2 * g * z * m.np.conj(z) + m.np.conj(g * z * z))
    return f


def linear(m):
    @m.extend.primitive
    def running(x):
        return numpy.cumsum(x)

    m.extend.def_linear(running)
    return running


RULES = {
    "defvjp": (lambda m: m.ad.grad(logsumexp(m))(X), P),
    "defvjp, second argument": (lambda m: m.ad.grad(logsumexp(m), 1)(X, 2.0), LSE),
    "defvjp, both arguments": (
        lambda m: m.ad.grad(logsumexp(m), (0, 1))(X, 2.0),
        (2 * P, LSE),
    ),
    "defvjp, keyword": (lambda m: m.ad.grad(logsumexp(m))(X, y=2.0), 2 * P),
    "defvjp, second derivative": (
        lambda m: m.ad.hessian(logsumexp(m))(X),
        numpy.diag(P) - numpy.outer(P, P),
    ),
    "defvjp, options": (
        lambda m: (lambda f: m.ad.jacobian(lambda x: f(x, 3.0, 2, "more", shift=1.0))(X))(
            with_options(m)
        ),
        numpy.diag(6 * X),
    ),
    "defvjp of None": (
        lambda m: (lambda f: m.ad.grad(lambda x: m.np.sum(f(x, x)))(X))(without_slope(m)),
        X,
    ),
    "defvjp of complex numbers": (
        lambda m: (lambda f: m.ad.grad(lambda z: m.np.real(m.np.sum(f(z) * (1 + 2j))))(Z))(
            complex_rule(m)
        ),
        2 * (1 + 2j) * Z * Z.conj() + ((1 + 2j) * Z * Z).conj(),
    ),
    "defvjp_argnum": (lambda m: m.ad.grad(by_number(m), (0, 1))(2.0, 3.0), (3.0, 2.0)),
    "defvjp_argnums": (lambda m: m.ad.grad(together(m), (0, 1))(2.0, 3.0), (3.0, 2.0)),
    "defjvp": (lambda m: m.ad.make_jvp(forward_only(m))(X, 2 * X)(X), (2 * X**2, 2 * X**2)),
    "defjvp, same": (
        lambda m: m.ad.make_jvp(forward_only(m), 1)(X, 2 * X)(X),
        (2 * X**2, X**2),
    ),
    "defjvp_argnum": (lambda m: m.ad.make_jvp(by_number(m), 1)(2.0, 3.0)(1.0), (6.0, 2.0)),
    "def_linear": (lambda m: m.ad.make_jvp(linear(m))(X)(3 * X), (X.cumsum(), 3 * X.cumsum())),
}
ALL = SCRIPTS | RULES


@pytest.mark.parametrize("name", ALL)
def test_scripts(name):
    script, wanted = ALL[name]
    assert_alike(script(OURS), wanted)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ALL)
def test_scripts_under_autograd(theirs, name):
    script, wanted = ALL[name]
    assert_alike(script(theirs), wanted)


@pytest.mark.parametrize(
    "name",
    [
        "grad",
        "grad of complex numbers",
        "grad of one element",
        "elementwise_grad",
        "jacobian",
        "hessian_vector_product",
        "tensor_jacobian_product",
        "deriv",
    ],
)
def test_transformed_functions_compile(name):
    script, wanted = SCRIPTS[name]
    jitted = SimpleNamespace(
        np=OURS.np, ad=SimpleNamespace(**{n: jit_after(n) for n in fwdad.compat.autograd.__all__})
    )
    assert_alike(script(jitted), wanted)


def jit_after(name):
    return lambda *args: fwdad.jit(getattr(fwdad.compat.autograd, name)(*args), backend="numpy")


def test_the_names_are_autograd_s():
    ad = pytest.importorskip("autograd")
    names = {name for name in dir(ad) if callable(getattr(ad, name)) and not name.startswith("_")}
    assert names - {"isinstance", "type", "dict", "list", "tuple"} <= {
        *fwdad.compat.autograd.__all__
    }


def test_numpy_is_numpy():
    np = fwdad.compat.autograd.numpy
    import fwdad.compat.autograd.numpy.linalg as npl  # noqa: PLC0415  (as scripts do)
    import fwdad.compat.autograd.numpy.random as npr  # noqa: PLC0415
    from fwdad.compat.autograd.numpy.fft import fft  # noqa: PLC0415

    assert np.sin is numpy.sin
    assert np.abs is numpy.abs
    assert np.linalg.solve is npl.solve is numpy.linalg.solve
    assert npr.default_rng is numpy.random.default_rng
    assert fft is numpy.fft.fft
    with pytest.raises(AttributeError, match="foo"):
        np.foo  # noqa: B018


def test_scipy_is_scipy():
    import fwdad.compat.autograd.scipy.stats.norm as norm  # noqa: PLC0415
    import scipy  # noqa: PLC0415

    import fwdad.compat.autograd.scipy.stats as sps  # noqa: PLC0415
    from fwdad.compat.autograd.scipy.integrate import odeint  # noqa: PLC0415
    from fwdad.compat.autograd.scipy.linalg import expm  # noqa: PLC0415
    from fwdad.compat.autograd.scipy.signal import convolve  # noqa: PLC0415
    from fwdad.compat.autograd.scipy.special import expit  # noqa: PLC0415

    assert norm is sps.norm is scipy.stats.norm
    assert (odeint, expm, convolve, expit) == (
        scipy.integrate.odeint,
        scipy.linalg.expm,
        scipy.signal.convolve,
        scipy.special.expit,
    )
    slope = fwdad.compat.autograd.grad(lambda x: numpy.sum(norm.logpdf(x, 0.0, 2.0)))(X)
    assert_alike(slope, -X / 4)


def test_builtins_are_python_s():
    from fwdad.compat.autograd.builtins import dict as d  # noqa: PLC0415
    from fwdad.compat.autograd.builtins import isinstance as i  # noqa: PLC0415

    assert (d, i) == (dict, isinstance)


def test_multigrad_dict():
    found = OURS.ad.multigrad_dict(lambda a, b=3.0, *c: a * b * c[0])(1.0, 2.0, 4.0, 5.0)
    assert_alike(dict(found), {"a": 8.0, "b": 4.0, "c": (2.0, 0.0)})
    with pytest.raises(UnsupportedTypeError, match="keyword only"):
        OURS.ad.multigrad_dict(lambda a, *, b: a * b)(1.0, b=2.0)


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (NonScalarOutputError, "jacobian", lambda: transforms.grad(lambda x: x**2)(X)),
        (NonScalarOutputError, "one number", lambda: transforms.holomorphic_grad(lambda z: z)(Z)),
        (
            NotHolomorphicError,
            "does not hold",
            lambda: transforms.holomorphic_grad(lambda z: abs(z) + 0j)(1j),
        ),
        (NotHolomorphicError, "holomorphic=True", lambda: transforms.jacobian(lambda z: z)(Z)),
        (NotHolomorphicError, "conjugate", lambda: transforms.make_jvp(numpy.conj)(Z)(Z)),
        (UnsupportedTypeError, "real values", lambda: transforms.elementwise_grad(numpy.exp)(Z)),
        (UnsupportedTypeError, "Write 3.0", lambda: transforms.grad(lambda x: x**2)(3)),
        (UnsupportedTypeError, "astype", lambda: transforms.grad(numpy.sum)(numpy.arange(3))),
        (UnsupportedTypeError, "argnums", lambda: transforms.grad(numpy.sum, "x")),
        (ValueError, "no parameter 'c'", lambda: OURS.ad.grad_named(lambda a, b: a, "c")),
        (AttributeError, "autograd.foo has no", lambda: OURS.ad.foo),
        (NotImplementedError, "register_tangent_type", lambda: OURS.extend.VSpace(X)),
        (UnsupportedTypeError, "of your own", lambda: OURS.extend.primitive(numpy.sum)),
        (
            MissingTransposeError,
            "lanes of its tangents",
            lambda: (lambda f: OURS.ad.grad(lambda x: numpy.sum(f(x, x)))(X))(forward_only(OURS)),
        ),
    ],
)
def test_refusals(error, words, call):
    with pytest.raises(error, match=words):
        call()


def test_a_primitive_leaves_its_function_alone():
    def f(x):
        return x**2

    twin = OURS.extend.primitive(f)
    OURS.extend.defvjp(twin, lambda ans, x: lambda g: 100.0 * g)
    assert OURS.ad.grad(twin)(3.0) == 100.0
    assert OURS.ad.grad(f)(3.0) == 6.0


def test_notrace_primitive():
    rounded = OURS.extend.notrace_primitive(lambda x: numpy.round(x + 0.4))
    assert_alike(OURS.ad.grad(lambda x: numpy.sum(rounded(x) * x))(X), X)


TREE = {"b": [1.0, numpy.ones((2, 2))], "a": (3.0, {"d": X, "c": 2.0})}


def test_flatten_beside_autograd(theirs):
    others = importlib.import_module("autograd.misc.flatten")
    for f in (misc_flatten.flatten, others.flatten):
        vector, unflatten = f(TREE)
        assert_alike(vector, numpy.array([3.0, 2.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0]))
        again = unflatten(2 * vector)
        assert_alike(again["a"][1]["d"], 2 * X)
        assert_alike(again["b"], [2.0, 2 * numpy.ones((2, 2))])
    for m in (misc_flatten, others):
        f, unflatten, x = m.flatten_func(lambda p, k: {"y": k * p["b"][1], "x": p["a"][0]}, TREE)
        assert_alike(f(x, 5.0), numpy.array([3.0, 5.0, 5.0, 5.0, 5.0]))


def test_flatten_alone():
    vector, unflatten = misc_flatten.flatten(TREE)
    assert_alike(vector, numpy.array([3.0, 2.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0]))
    slope = transforms.grad(lambda v: numpy.sum(unflatten(v)["a"][1]["d"] ** 2))(vector)
    assert_alike(slope, numpy.array([0.0, 0.0, 2.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0]))


def test_check_grads():
    check = test_util.check_grads
    check(lambda x, n: numpy.sin(x) ** n)(X, 3)
    check(lambda x, y: x * y, (0, 1), modes=["rev"], order=1)(X, X)
    with pytest.raises(AssertionError, match="off by"):
        check(lambda x: fwdad.stop_gradient(x) * x)(X)


def test_optimizers_are_refused():
    with pytest.raises(NotImplementedError, match="minimize"):
        optimizers.adam(None, X)


def test_gradients_pickle():
    assert_alike(pickle.loads(pickle.dumps(transforms.grad(numpy.sum)))(X), numpy.ones(2))
