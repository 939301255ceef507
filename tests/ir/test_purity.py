"""Nothing is called with values that nobody passed, but what a table knows to be pure."""

import contextlib
import ctypes
import io
import logging

import numba
import numpy as np
import pytest
import scipy.ndimage
import scipy.special
from numpy.testing import assert_allclose
from scipy.interpolate import make_interp_spline
from scipy.io import savemat

import fwdad
from fwdad.ir.abstract_eval import purity, samples
from fwdad.ops import pure

X = np.array([3.0, 4.0])
IMAGE = np.random.default_rng(0).normal(size=(5, 6))

TRANSFORMS = {
    "grad": lambda f: fwdad.grad(f)(X),
    "vjp": lambda f: fwdad.vjp(f, X),
    "jacobian": lambda f: fwdad.jacobian(f, X),
    "linearize": lambda f: fwdad.linearize(f, X),
    "hessian": lambda f: fwdad.hessian(f, X),
    "jit": lambda f: fwdad.jit(f, backend="numpy")(X),
    "jit(grad)": lambda f: fwdad.jit(fwdad.grad(f), backend="numpy")(X),
    "trace": lambda f: fwdad.trace(f, X),
    "memory_report": lambda f: fwdad.memory_report(f, X),
    "explain": lambda f: fwdad.explain(fwdad.grad(f), X),
    "show": lambda f: fwdad.show(fwdad.jit(f), X),
    "supported": lambda f: fwdad.supported(f),
}


def tried(transform, f):
    """Run a transform, which may refuse f."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(fwdad.errors.FwdadError):
        TRANSFORMS[transform](f)


def numbers_in(files):
    """All numbers that NumPy can read in files."""
    found = []
    for path in files:
        if path.suffix == ".npy":
            found.append(np.load(path))
        elif path.suffix == ".npz":
            found.extend(np.load(path).values())
        elif path.suffix == ".txt":
            found.append(np.loadtxt(path))
        elif path.suffix == ".bin":
            found.append(np.fromfile(path))
    return found


WRITERS = {
    "save": lambda to, v: np.save(to / "a.npy", v),
    "savez": lambda to, v: np.savez(to / "a.npz", v),
    "savez_compressed": lambda to, v: np.savez_compressed(to / "a.npz", v),
    "savetxt": lambda to, v: np.savetxt(to / "a.txt", v),
    "tofile": lambda to, v: v.tofile(to / "a.bin"),
    "text": lambda to, v: (to / "a.txt").write_text(f"{v[0]} {v[1]}"),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("writer", WRITERS)
def test_files_hold_numbers_that_were_passed(tmp_path, transform, writer):
    write = WRITERS[writer]

    def f(x):
        write(tmp_path, x)
        return np.sum(x**2)

    tried(transform, f)
    for found in numbers_in(tmp_path.iterdir()):
        assert_allclose(found, X)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_file_of_matlabs_holds_no_made_up_number(tmp_path, transform):
    def f(x):
        savemat(tmp_path / "a.mat", {"x": x})
        return np.sum(x**2)

    tried(transform, f)
    for path in tmp_path.iterdir():
        assert np.float64(0.75).tobytes() not in path.read_bytes()
        assert np.float64(1.0).tobytes() not in path.read_bytes()


SEEN = []


def note(v):
    SEEN.append(np.array(v, float))


class Axes:
    """Keeps what is drawn, as a plotting library does."""

    def plot(self, v):
        note(v)


class Opaque:
    """An object that is called, and notes it."""

    def __call__(self, v):
        note(v)
        return 2.0


class Handler(logging.Handler):
    """A handler that notes what is logged."""

    def emit(self, record):
        note(record.args[0])


LOG = logging.getLogger("fwdad.tests.purity")
LOG.setLevel(logging.INFO)
LOG.addHandler(Handler())
LOG.propagate = False
AXES, OPAQUE = Axes(), Opaque()
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda v: note(v) or v)


def with_a_rule(x):
    note(x)
    return 2.0 * x


@fwdad.frule(with_a_rule)
def with_a_rule_frule(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return with_a_rule(x), 2.0 * x_dot


def logs(x):
    """A logger that is declared a constant."""
    note(x)


fwdad.locally_constant(logs)

NOTING = {
    "plot": lambda x: AXES.plot(x),
    "opaque": lambda x: OPAQUE(x),
    "callback": lambda x: CALLBACK(3.0),
    "logging": lambda x: LOG.info("%s", x),
    "rule": lambda x: with_a_rule(x),
    "constant": lambda x: logs(x),
    "frompyfunc": lambda x: np.frompyfunc(note, 1, 1)(x),
    "vectorize": lambda x: np.vectorize(note, otypes=[float])(x),
    "apply_along_axis": lambda x: np.apply_along_axis(lambda row: (note(row), row)[1], 0, x),
    "piecewise": lambda x: np.piecewise(x, [x > 0], [lambda v: (note(v), v)[1]]),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("kind", NOTING)
def test_functions_see_only_what_was_passed(transform, kind):
    effect = NOTING[kind]

    def f(x):
        effect(x)
        return np.sum(x**2)

    SEEN.clear()
    tried(transform, f)
    for v in SEEN:
        assert set(v.ravel()) <= set(X)


@pytest.fixture
def calls(monkeypatch):
    """Every function that is called on samples."""
    found = []
    run = samples.quietly

    def quietly(action):
        found.append(action.__closure__)
        return run(action)

    monkeypatch.setattr(samples, "quietly", quietly)
    return found


@numba.vectorize
def doubled(x):
    return 2.0 * x


PROGRAMS = [
    lambda x: np.sum(np.sin(x) * np.outer(x, x)),
    lambda x: np.sum(np.convolve(x, x)) + np.linalg.norm(x),
    lambda x: np.sum(np.fft.fft(x).real),
    lambda x: np.sum(np.histogram(x, bins=3)[0]) + x[0],
    lambda x: np.sum(np.pad(x, 2)),
    lambda x: np.quantile(x, 0.3, method="nearest"),
    lambda x: np.sum(with_a_rule(x)),
    lambda x: np.sum(doubled(x)) + np.sum(x),
    lambda x: np.sum(scipy.ndimage.gaussian_filter(x, 1.0)),
    lambda x: np.poly1d(x)(2.0),
]


@pytest.mark.parametrize("f", PROGRAMS)
def test_no_call_on_samples_is_outside_the_table(calls, f):
    for transform in ("trace", "jit", "jit(grad)", "vjp"):
        tried(transform, f)
    for cells in calls:
        held = [cell.cell_contents for cell in cells]
        functions = [x for x in held if callable(x)]
        assert functions
        assert all(map(purity.is_pure, functions))


def test_the_gate_is_shut():
    for f in (np.save, np.savetxt, np.random.normal, print, note, OPAQUE, CALLBACK, np.load,
              np.seterr, np.ndarray.tofile, np.frompyfunc(note, 1, 1), np.add.at):  # fmt: skip
        assert not purity.is_pure(f)
        with pytest.raises(samples.CannotInferError):
            samples.run_on_sample(f, (1.0,), {})
    with pytest.raises(samples.CannotInferError, match="methods"):
        samples.run_on_sample(np.add, (1.0, AXES), {})
    with pytest.raises(samples.CannotInferError, match="methods"):
        samples.run_on_sample(np.piecewise, (X, [X > 0], [note]), {})


def test_every_name_on_the_list_is_a_function():
    import importlib  # noqa: PLC0415

    for module, names in pure.NAMES.items():
        home = importlib.import_module(module)
        known = [name for name in names.split() if hasattr(home, name)]
        assert len(known) > 0.5 * len(names.split())
        assert all(callable(getattr(home, name)) for name in known)


IMAGES = {
    "map_coordinates": lambda a: scipy.ndimage.map_coordinates(a, [[0.5, 1.2, 2.0], [0.3, 1.7, 2]]),
    "spline_filter": lambda a: scipy.ndimage.spline_filter(a),
    "spline_filter1d": lambda a: scipy.ndimage.spline_filter1d(a, axis=0),
    "shift": lambda a: scipy.ndimage.shift(a, (0.3, 0.2)),
    "rotate": lambda a: scipy.ndimage.rotate(a, 20.0),
    "rotated in place": lambda a: scipy.ndimage.rotate(a, 20.0, reshape=False),
    "affine_transform": lambda a: scipy.ndimage.affine_transform(a, np.array([[1, 0.1], [0, 1]])),
    "affine shape": lambda a: scipy.ndimage.affine_transform(a, np.eye(2), output_shape=(3, 4)),
    "zoom": lambda a: scipy.ndimage.zoom(a, 1.5),
    "median_filter": lambda a: scipy.ndimage.median_filter(a, 3),
    "rank_filter": lambda a: scipy.ndimage.rank_filter(a, 1, 3),
    "grey_erosion": lambda a: scipy.ndimage.grey_erosion(a, 3),
    "maximum_filter1d": lambda a: scipy.ndimage.maximum_filter1d(a, 3),
    "sobel": scipy.ndimage.sobel,
    "gaussian_filter": lambda a: scipy.ndimage.gaussian_filter(a, 1.0),
    "single": lambda a: scipy.ndimage.shift(a, 0.5, output=np.float32),
}


@pytest.mark.parametrize("name", IMAGES)
def test_filters_of_images_do_not_crash(name):
    f = IMAGES[name]
    made, expected = fwdad.jit(f, backend="numpy")(IMAGE), f(IMAGE)
    assert made.dtype == expected.dtype
    assert_allclose(made, expected)
    double = fwdad.jit(lambda a: 2 * f(a), backend="numpy")
    assert_allclose(double(1j * IMAGE + 1) if name == "shift" else double(IMAGE),
                    2 * (f(1j * IMAGE + 1) if name == "shift" else expected))  # fmt: skip
    with contextlib.suppress(fwdad.errors.MissingRuleError):
        fwdad.grad(lambda a: np.sum(f(a)))(IMAGE)


def test_a_callback_of_an_image_is_refused_or_right():
    def f(a):
        return scipy.ndimage.geometric_transform(a, lambda at: (at[0], at[1] + 0.5))

    fast = fwdad.jit(f)
    for image in (IMAGE, 2.0 * IMAGE):
        np.testing.assert_array_equal(fast(image), f(image))
    for derivative in (fwdad.grad, lambda g: fwdad.jit(fwdad.grad(g))):
        with pytest.raises(fwdad.errors.MissingRuleError):
            derivative(lambda a: np.sum(f(a)))(IMAGE)


def test_splines_do_not_damage_the_heap():
    t = np.linspace(0, 1, 6)

    def f(y):
        return make_interp_spline(t, y)(0.33)

    np.testing.assert_array_equal(fwdad.jit(f)(np.sin(t)), f(np.sin(t)))


def test_pure_lets_a_function_be_tried():
    calls = []

    def compiled(x):  # stands for one that calls into a library
        calls.append(len(x))
        return float(f"{np.sum(x)}")

    f = fwdad.jit(lambda x: 2.0 * compiled(x), backend="numpy")
    with pytest.raises(fwdad.errors.UntraceableError):
        f(X)
    assert not calls

    @fwdad.frule(compiled)
    def compiled_frule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return compiled(x), np.sum(x_dot)

    with pytest.raises(fwdad.errors.UntraceableError, match=r"fwdad\.pure"):
        f(X)
    assert not calls
    assert fwdad.pure(compiled) is compiled
    assert f(X) == 14.0
    assert len(calls) > 1
    with pytest.raises(fwdad.errors.UnsupportedTypeError):
        fwdad.pure(3)


def test_a_ufunc_of_anybody_is_typed_by_its_loops():
    x = np.array([1, 2, 3])
    for v in (x, 1.0 * x, np.float32(2.0), 2.0):
        made = fwdad.jit(lambda v: doubled(v), backend="numpy")(v)
        assert_allclose(made, 2.0 * np.asarray(v))
        assert np.asarray(made).dtype == np.asarray(doubled(v)).dtype


def test_a_ufunc_without_a_value_at_one_is_typed_by_its_loops():
    """The quantile of a negative binomial distribution raises for a probability of 1."""
    quantile = scipy.special._ufuncs._nbinom_ppf
    for p in (np.array([0.3, 0.8]), np.float32(0.3), 0.3):
        want = quantile(p, 6.5, 0.4)
        made = fwdad.jit(lambda p: quantile(p, 6.5, 0.4), backend="numpy")(p)
        assert_allclose(made, want)
        assert np.asarray(made).dtype == want.dtype


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_type_of_a_function_with_a_rule_is_inferred_from_its_source(n):
    x = np.arange(1.0, n + 1)

    def f(x):
        return np.sum(pair(x)[0] * pair(x)[1])

    expected = np.cos(x) * x + np.sin(x)
    for g in (fwdad.grad(f), fwdad.jit(fwdad.grad(f), backend="numpy")):
        assert_allclose(g(x), expected, rtol=1e-13)
    assert_allclose(fwdad.jacobian(f, x), expected, rtol=1e-13)


def pair(x):
    """Two results."""
    return np.sin(x), 1.0 * x


@fwdad.frule(pair)
def pair_frule(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return pair(x), (np.cos(x) * x_dot, 1.0 * x_dot)
