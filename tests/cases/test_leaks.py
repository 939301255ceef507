"""A tangent is never lost in silence: what would turn a dual into a plain number raises.

What only looks at a value (`print`, f-strings, `isinstance`) behaves as for the primal.
"""

import array
import contextlib
import copy
import ctypes
import io
import json
import math
import pickle
import struct

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad
from tests.cases.check import line_of

CHUNKS = [1, 2, 3]
X = np.array([0.5, 1.5, 2.5])


def leaks(f, x=X, chunk=2):
    """F raises, at a place in this file; and what came and what to do are said."""
    with pytest.raises(fwdad.errors.DualLeakError) as caught:
        fwdad.jacobian(f, x, chunk=chunk)
    error = caught.value
    assert error.filename == __file__
    assert isinstance(error, TypeError)
    assert len(str(error.msg)) > 20
    return error


# -- ints


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize(
    "f",
    [
        lambda x: int(x[0]) * x,
        lambda x: [10, 20, 30][x[0].__index__()] * x,
        lambda x: list(map(int, x)),
        lambda x: int(np.sum(x)),
        lambda x: f"{int(x[0]):d}",
        lambda x: np.arange(5)[x[0]],
    ],
    ids=line_of,
)
def test_int_of_a_dual(f, chunk):
    with pytest.raises((fwdad.errors.DualLeakError, IndexError, TypeError)) as caught:
        fwdad.jacobian(f, X, chunk=chunk)
    with contextlib.suppress(Exception):  # where the primal raises as well, the primal's error
        f(X)
        assert isinstance(caught.value, fwdad.errors.DualLeakError)


def test_int_of_a_dual_says_so():
    leaks(lambda x: int(x[0]) * x)
    leaks(lambda x: int(x), 2.5)  # noqa: PLW0108 - lifted
    leaks(lambda x: range(int(np.ceil(x[0]) * x[1])), X)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_int_of_what_carries_no_tangent(chunk):
    """The way out: floor, round and comparisons are locally constant, so their ints are right."""

    def f(x):
        n = int(np.floor(x[2])) + int(x[0] > 0) + int(np.argmax(x)) + int(round(x[1] * 0.7))
        return (
            x[0] * n + int(fwdad.stop_gradient(x[1])) * x[1] + round(x[2]) * x[2] + math.floor(x[1])
        )

    y, gradient = fwdad.value_and_grad(f, chunk=chunk)(X)
    assert y == f_plain(X)
    assert_array_equal(gradient, [2 + 1 + 2 + 1, 1.0, 2.0])


def f_plain(x):
    return x[0] * 6 + 1 * x[1] + 2 * x[2] + 1


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize(
    "store",
    [
        lambda buffer, x: buffer.__setitem__(0, x[0]),
        lambda buffer, x: buffer.__setitem__(slice(None), x),
        lambda buffer, x: buffer.fill(x[0]),
        lambda buffer, x: np.copyto(buffer, x, casting="unsafe"),
        lambda buffer, x: np.put(buffer, [0], x[0]),
        lambda buffer, x: np.put_along_axis(buffer, np.array([0]), x[:1], 0),
        lambda buffer, x: np.multiply(x, 2, out=buffer, casting="unsafe"),
    ],
    ids=line_of,
)
def test_integer_buffer_refuses_a_dual(store, chunk):
    def f(x):
        buffer = np.zeros(3, dtype=int)
        store(buffer, x)
        return buffer * 1.0

    f(X)  # the plain program truncates
    leaks(f, chunk=chunk)


def test_integer_buffer_by_statement():
    def store(x):
        counts = np.zeros(3, dtype=int)
        counts[1] = x[1]
        return counts

    def add(x):
        counts = np.zeros(3, dtype=int)
        counts[0:2] += np.floor(x[:2]).astype(int)  # what carries no tangent may go in
        counts[0] += x[0]
        return counts

    leaks(store)
    leaks(add)


@pytest.mark.parametrize(
    "x", [2, True, np.int64(2), np.arange(3), np.array([True, False]), [1, 2], "a", None]
)
@pytest.mark.parametrize(
    "ask",
    [
        lambda f, x: fwdad.derivative(f, x),
        lambda f, x: fwdad.jacobian(f, x),
        lambda f, x: fwdad.grad(f)(x),
        lambda f, x: fwdad.jvp(f, x, x),
        lambda f, x: fwdad.value_and_jacobian(f, x, chunk=2),
        lambda f, x: fwdad.hessian(f, x),
    ],
)
def test_derivative_with_respect_to_an_int(ask, x):
    with pytest.raises(TypeError) as caught:
        ask(lambda x: 1.0, x)
    if isinstance(x, int) and not isinstance(x, bool):
        assert "2.0" in str(caught.value)


def test_int_leaf_of_a_float_tree_has_no_tangent():
    x = {"a": 2.0, "n": 3, "flag": True, "name": "x", "none": None, "f": math.sin}
    gradient = fwdad.grad(lambda p: p["a"] ** p["n"] * p["flag"])(x)
    assert gradient["a"] == 12.0
    for key in ("n", "flag", "name", "none", "f"):
        assert gradient[key] is fwdad.NoTangent
    y, y_dot = fwdad.jvp(lambda p: (p["a"] * p["n"], p["n"], p["name"]), x, dict(x, a=1.0))
    assert y == (6.0, 3, "x")
    assert y_dot[0] == 3.0
    assert y_dot[1] is fwdad.NoTangent
    assert y_dot[2] is fwdad.NoTangent


# -- C


class Handle(ctypes.Structure):
    _fields_ = (("value", ctypes.c_double),)


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.ctypes.data,
        lambda x: memoryview(x)[0] * x,
        lambda x: x.data[0] * x,
        lambda x: x.tobytes(),
        lambda x: pickle.dumps(x),
        lambda x: pickle.dumps({"x": [x[0]]}),
        lambda x: x[0].__reduce__(),
        lambda x: x.view(np.int64) * 1.0,
        lambda x: x.astype(int) * 1.0,
        lambda x: np.array(x, dtype=int) * 1.0,
        lambda x: (x[0] * 1.0).as_integer_ratio()[0],
        lambda x: x.__array_interface__["data"],
        lambda x: x[0].__array_struct__,
    ],
    ids=line_of,
)
def test_leaving_for_c(f, chunk):
    leaks(f, chunk=chunk)


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.frombuffer(x) * 2.0,
        lambda x: pickle.Pickler(io.BytesIO()).dump(x[0]),
        lambda x: struct.pack("d", x[0]),
        lambda x: array.array("d", x)[0] * x,
        lambda x: array.array("d", [x[0], x[1]])[1],
        lambda x: ctypes.c_double(x[0]).value * x,
        lambda x: Handle(x[0]).value,
        lambda x: json.dumps([x[0]]),
        lambda x: json.dumps({"x": x[0].item()}),
        lambda x: bytes(x),
        lambda x: bytearray(x),
        lambda x: np.from_dlpack(x),
        lambda x: x.astype("U") and 1.0,
    ],
    ids=line_of,
)
def test_function_in_c(f, chunk):
    """A leak or a missing rule: in either case the line, and what to do."""
    with pytest.raises(fwdad.errors.FwdadError) as caught:
        fwdad.jacobian(f, X, chunk=chunk)
    assert caught.value.filename == __file__
    assert caught.value.lineno == f.__code__.co_firstlineno


def sourceless(text):
    namespace = {"np": np, "math": math, "pickle": pickle, "struct": struct, "array": array}
    exec(f"f = lambda x: {text}", namespace)
    return namespace["f"]


@pytest.mark.parametrize(
    "text",
    [
        "math.sin(x[0])", "float(x[0])", "complex(x[0])", "int(x[0])",
        "np.asarray(x, dtype=float)", "struct.pack('d', x[0])", "array.array('d', [x[0]])",
        "pickle.dumps(x)", "x.ctypes", "memoryview(x)", "np.array([x[0], x[1]], dtype=float)",
        "np.zeros(3) .__setitem__(0, x[0])", "np.frombuffer(x)", "math.fsum(x)",
        "list(map(float, x))",
    ],
)  # fmt: skip
@pytest.mark.parametrize("chunk", CHUNKS)
def test_leaving_for_c_without_source(text, chunk):
    """Run on duals as they are: `__float__` called from C raises and drops no tangent.

    Which error it is, is C's to say: `struct` makes its own of ours.
    """
    f = sourceless(text)
    with pytest.raises((fwdad.errors.FwdadError, TypeError, BufferError, struct.error)):
        fwdad.jacobian(f, X, chunk=chunk)


def test_series_of_pandas_times_a_dual():
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([1.0, 2.0, 3.0])
    for f in (lambda x: (series * x[0]).sum(), lambda x: (x * series).sum()):
        with pytest.raises((fwdad.errors.DualLeakError, fwdad.errors.MissingRuleError)):
            fwdad.jacobian(f, X)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_what_was_written_is_not_read_back(chunk, tmp_path):
    """Files hold the values; who reads them back would lose the derivative."""
    text, binary = tmp_path / "x.txt", tmp_path / "x.npy"

    def by_numpy(x):
        np.save(binary, x)
        return np.load(binary) * x

    def by_text(x):
        np.savetxt(text, x)
        return np.loadtxt(text) * x

    def by_hand(x):
        with text.open("w") as file:
            file.write(f"{x[0]}")
        with text.open() as file:
            return float(file.read()) * x

    def in_memory(x):
        file = io.BytesIO()
        np.save(file, x)
        file.seek(0)
        return np.load(file) * x

    for f in (by_numpy, by_text, by_hand, in_memory):
        leaks(f, chunk=chunk)
    leaks(lambda x: float(f"{x[0]}") * x, chunk=chunk)
    leaks(lambda x: float(str(x[1])) * x, chunk=chunk)
    leaks(lambda x: complex("%r" % float(x[1])) * x, chunk=chunk)  # noqa: UP031


# -- what only looks


@pytest.mark.parametrize("x", [0.5, np.float64(0.5), np.array(0.5), X, np.float32(0.5)])
def test_text_is_the_primals(x):
    def describe(x):
        out = io.StringIO()
        print(x, [x], {"x": x}, file=out)
        print("%s %r" % (x, x), "{0} {0!r:>30}".format(x), f"{x} {x!r} {x=}", file=out)  # noqa: UP031, UP032
        if np.ndim(x) == 0 and not isinstance(x, np.ndarray):
            print(f"{x:.3f} {x:10.2e} {x:g}", "%.2f" % x, format(x, ".1f"), file=out)  # noqa: UP031
        print(str(x) + repr(x), file=out)
        return out.getvalue()

    class Kept(Exception):  # noqa: N818 - it carries the text out
        pass

    def f(x):
        raise Kept(describe(x))

    with pytest.raises(Kept) as caught:
        fwdad.jvp(f, x, np.ones_like(x))
    assert str(caught.value) == describe(x)


def test_print_shows_the_primal(capsys):
    def f(x):
        print(x, x[0], f"{x[1]:.2f}")
        return x

    f(X)
    plain = capsys.readouterr().out
    fwdad.jacobian(f, X, chunk=3)
    assert capsys.readouterr().out == plain
    fwdad.jacobian(f, X, chunk=1)
    assert capsys.readouterr().out == plain


@pytest.mark.parametrize("chunk", CHUNKS)
def test_type_questions_are_the_primals(chunk):
    def questions(x):
        y, z = x[0], x[0].item()
        return [
            isinstance(x, np.ndarray), type(x) is np.ndarray, type(x) == np.ndarray,
            isinstance(x, (list, np.ndarray)), isinstance(y, np.float64), isinstance(y, float),
            type(y) is np.float64, isinstance(y, np.generic), isinstance(z, float),
            type(z) is float, isinstance(z, np.generic), type(z) in (int, float),
            isinstance(z, int), x.__class__ is np.ndarray, y.__class__.__name__, type(z).__name__,
            isinstance(y, np.floating | int), issubclass(type(z), float), np.isscalar(y),
            np.isscalar(z), np.isscalar(x), np.iterable(x), np.ndim(y), x.shape, x.dtype, x.ndim,
            x.size, x.nbytes, x.itemsize, x.strides, len(x), x.flags.writeable,
            x.flags.c_contiguous, y.shape, y.dtype, y.ndim, np.isrealobj(x), np.iscomplexobj(x),
            np.result_type(x, 1), callable(x), hasattr(x, "foo"), hasattr(x, "sum"),
            hasattr(z, "real"), z.is_integer(), np.issubdtype(x.dtype, np.floating),
            x.T.flags.f_contiguous, np.can_cast(x.dtype, np.float32), x.base is None,
            np.may_share_memory(x, x[1:]), np.shares_memory(x, x + 1), y > 0, bool(z), y in x,
            0.5 in x, x.tolist().index(1.5), [0.5, 1.5].count(z), sorted([z, 0.1])[0],
            hash(z) == hash(0.5), {z: 1}[0.5], z in {0.5}, z == 0.5, y is None, x is x,
            isinstance(z, complex), isinstance(x[:2], np.ndarray),
        ]  # fmt: skip

    class Kept(Exception):  # noqa: N818 - it carries the results out
        pass

    def f(x):
        raise Kept(questions(x))

    with pytest.raises(Kept) as caught:
        fwdad.jacobian(f, X, chunk=chunk)
    assert caught.value.args[0] == questions(X)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_conversions_that_stay_dual(chunk):
    def f(x):
        a = x[0].item() + x.item(1) + float(x[2]) + complex(x[0]).real + sum(x.tolist())
        b, c, d = map(float, x)
        e = np.float64(x[1]) + np.asarray(x)[0] + np.array(x.tolist())[1] + float(x[:1][0])
        g = (
            copy.copy(x)[0]
            + copy.deepcopy(x)[1]
            + copy.deepcopy({"a": [x]})["a"][0][2]
            + x.copy()[0]
        )
        return a + b + c + d + e + g + np.array([x[0], 2.0])[0] + np.array(x, dtype=float)[1]

    y, gradient = fwdad.value_and_grad(f, chunk=chunk)(X)
    assert y == f(X)
    assert_array_equal(gradient, [9.0, 7.0, 4.0])


# -- what outlives its call


def keep_unseen(values):
    """A function without source that hands its argument to a method in C: nobody sees it."""
    namespace = {"keep": values.append}
    exec("def f(x):\n    keep(x)\n    return x * 2.0\n", namespace)
    return namespace["f"]


@pytest.mark.parametrize(
    "use",
    [
        lambda d: d * 2.0, lambda d: 1.0 + d, lambda d: d / d, lambda d: -d, np.sin, np.sum,
        lambda d: d[0], lambda d: d > 0, lambda d: np.ones(3) * d,
        lambda d: np.concatenate((d, d)), lambda d: d.sum(),
        lambda d: d.tolist()[0] * 2.0, np.asarray,
        lambda d: np.zeros(3).__setitem__(slice(None), d),
        lambda d: fwdad.jacobian(lambda x: x * d, X), lambda d: list(d),
        lambda d: d.__setitem__(0, 1.0), lambda d: fwdad.jacobian(lambda d: d * 2.0, d),
        pickle.dumps, lambda d: d @ d,
    ],
)  # fmt: skip
def test_dual_that_outlives_its_call(use):
    """Used in any way, it raises and never returns a plain number."""
    values = []
    fwdad.jacobian(keep_unseen(values), X)
    if values:
        with pytest.raises((fwdad.errors.DeadDualError, fwdad.errors.DualLeakError)):
            use(values[0])
    else:  # it was seen and taken back
        assert fwdad.jacobian(keep_unseen(values), X) is not None


def test_dual_in_an_exception_outlives_its_call():
    class Diverged(Exception):  # noqa: N818 - as in the user's program
        pass

    def f(x):
        raise Diverged(x * 2.0)

    with pytest.raises(Diverged) as caught:
        fwdad.jacobian(f, X)
    carried = caught.value.args[0]
    if type(carried) is np.ndarray and not hasattr(carried, "__fwdad_tag__"):
        assert_array_equal(carried, X * 2.0)  # taken down to its value on the way out
    else:
        with pytest.raises(fwdad.errors.DeadDualError):
            carried * 2.0


def test_dual_in_a_generator_that_outlives_its_call():
    def values(x):
        for v in x:
            yield v * 2.0

    left = []
    namespace = {"keep": left.append, "values": values}
    exec("def f(x):\n    g = values(x)\n    keep(g)\n    return next(g)\n", namespace)
    assert_array_equal(fwdad.jacobian(namespace["f"], X), [2.0, 0.0, 0.0])
    if left:
        with pytest.raises(fwdad.errors.DeadDualError):
            next(left[0]) * 1.0
