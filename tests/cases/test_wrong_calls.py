"""Mistakes of the user's: the error is NumPy's own, about the arrays, and leads to the line."""

import math
import traceback

import numpy as np
import pytest
import scipy.linalg

import fwdad
from fwdad.errors import UntraceableError

X = np.array([0.7, 1.3, 2.1])

WRONG = [
    lambda x, a: np.sum(a, axis=2),
    lambda x, a: a.max(axis=-3),
    lambda x, a: np.cumsum(a, axis=2),
    lambda x, a: np.add.reduce(a, axis=2),
    lambda x, a: np.diff(a, axis=2),
    lambda x, a: np.sort(a, axis=2),
    lambda x, a: np.concatenate([a, a], axis=2),
    lambda x, a: np.concatenate([a, x]),
    lambda x, a: np.stack([a, x]),
    lambda x, a: np.take(a, [0, 5], axis=1),
    lambda x, a: np.transpose(a, (0, 2)),
    lambda x, a: np.squeeze(a, axis=0),
    lambda x, a: a.reshape(4, 4),
    lambda x, a: np.broadcast_to(a, (2, 3)),
    lambda x, a: np.full((2, 2), x),
    lambda x, a: np.split(x, 2)[0],
    lambda x, a: np.delete(a, 0, axis=2),
    lambda x, a: np.gradient(a, axis=2),
    lambda x, a: np.gradient(x, x[:2]),
    lambda x, a: np.rollaxis(a, 2),
    lambda x, a: np.resize(a, (-1, 2)),
    lambda x, a: np.percentile(a, 150.0),
    lambda x, a: (np.putmask(a, x > 0, x[0]), a)[1],
    lambda x, a: (np.place(a, x[:2] > 0, x), a)[1],
    lambda x, a: a[0, 3] * x,
    lambda x, a: a[3] * x,
    lambda x, a: a[0, 0, 0] * x,
    lambda x, a: x * a[:2, :2],
    lambda x, a: x - np.ones(4),
    lambda x, a: a @ x[:2],
    lambda x, a: np.dot(a, a[:2]),
    lambda x, a: np.einsum("ij,jk", a, a[:2]),
    lambda x, a: np.einsum("ij->k", a),
    lambda x, a: np.tensordot(a, a[:2], axes=1),
    lambda x, a: np.linalg.inv(a * 0.0),
    lambda x, a: np.linalg.solve(a, x[:2]),
    lambda x, a: np.linalg.cholesky(-a),
    lambda x, a: scipy.linalg.solve(a * 0.0, x),
    lambda x, a: np.fft.fft(a, axis=2).real,
    lambda x, a: np.interp(x, [0.0, 1.0, 2.0], x[:2]),
    lambda x, a: x + "a",
    lambda x, a: None * x,
    lambda x, a: x[0] @ x[1],
    lambda x, a: np.sin(x, foo=1),
    lambda x, a: max(x[0]),
    lambda x, a: math.log(-x[0]) * x,
    lambda x, a: np.diff(a, n=-1),
]


def column_is_stored(x, a):
    b = a.copy()
    b[:, 0] = x[:2]
    return b


def place_outside(x, a):
    b = np.zeros(3)
    b[4] = x[0]
    return b


def added_in_place(x, a):
    b = np.zeros(2)
    b += x
    return b


def names(f):
    code = f.__code__
    return f"{code.co_name} {code.co_firstlineno}"


def lines_of(error, f):
    """The lines of a function that an error leads to: by its traceback, a note or itself."""
    code = f.__code__
    found = {
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if (frame.filename, frame.name) == (code.co_filename, code.co_name)
    }
    for note in getattr(error, "__notes__", ()):
        if note.lstrip().startswith(f'File "{code.co_filename}"'):
            found.add(int(note.split(", line ")[1].split("\n")[0]))
    return found | {getattr(error, "lineno", None)}


def raised(call, *args):
    with pytest.raises(Exception) as caught:  # noqa: PT011  (whatever plain NumPy raises)
        call(*args)
    return caught.value


def same_text(mine, own):
    """The text, but for the spaces, what names the output beside the operands, and the float."""
    mine, own = ("".join(str(e).split()).replace("numpy.float64", "float") for e in (mine, own))
    return mine == own or own.startswith(mine)


def composed(f):
    def with_a_matrix(x):
        return f(x, np.outer(x, x) + 3.0 * np.eye(3))

    return with_a_matrix


def total(f):
    def summed(x):
        return np.sum(f(x))

    return summed


@pytest.mark.parametrize("f", [*WRONG, column_is_stored, place_outside, added_in_place], ids=names)
def test_the_error_is_that_of_plain_numpy(f, caplog):
    g = composed(f)
    own = raised(g, X)
    (line,) = {frame.lineno for frame in traceback.extract_tb(own.__traceback__)
               if frame.name == f.__name__ and frame.filename == __file__}  # fmt: skip
    now = [
        lambda x: fwdad.jvp(g, x, x),
        lambda x: fwdad.jacobian(g, x, chunk=2),
        fwdad.grad(total(g)),
    ]
    later = [
        fwdad.jit(g, backend="numpy"),
        fwdad.jit(fwdad.jacfwd(g), backend="numpy"),
        fwdad.jit(fwdad.grad(total(g)), backend="numpy"),
    ]
    for call in now:
        error = raised(call, X)
        assert type(error) is type(own), repr(error)
        assert same_text(error, own), str(error)
        assert line in lines_of(error, f)
    for call in later:
        error = raised(call, X)
        assert line in lines_of(error, f), (str(error), getattr(error, "__notes__", None))
        if isinstance(error, UntraceableError):  # known before it runs
            continue
        assert isinstance(error, type(own)), repr(error)
        assert same_text(error, own), str(error)
    assert not caplog.records  # no mistake of the library's


def test_arrays_of_other_lengths_are_no_array():
    def f(x):
        return np.array([x, x[:2]])

    own = raised(f, X)
    for error in (raised(fwdad.jacobian, f, X), raised(fwdad.jit(f, backend="numpy"), X)):
        assert type(error) in (type(own), UntraceableError)
        assert str(own) in str(error)
        assert f.__code__.co_firstlineno + 1 in lines_of(error, f)
