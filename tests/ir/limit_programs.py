"""Programs for the items of ``fwdad/ir/limits.md``, beside those of its first section.

What an entry is called is a part of the item's text: the tests look it up on the page.
"""

import cmath
import math

import numpy as np
import scipy.fft
import scipy.linalg
import scipy.ndimage
import scipy.spatial.distance

import fwdad

X = np.array([0.5, 1.25, 2.0, 3.5, -0.75, 0.3])

# -- "Run whole"


def square(x):
    return x[:, None] * x[None] + 9.0 * np.eye(len(x))


TABLE = np.array([[2.0, 0.3, 1.0], [0.1, 1.5, -0.4], [0.7, 0.2, 3.0], [1.0, -1.0, 0.5]])

RUN_WHOLE = {
    "cumprod": np.cumprod,
    "multiply.accumulate": np.multiply.accumulate,
    'linalg.qr(mode="complete")': lambda x: np.linalg.qr(np.stack((x, x**2)).T, mode="complete")[1],
    "ufunc.accumulate": np.subtract.accumulate,
    "maximum.accumulate": np.maximum.accumulate,
    "minimum.accumulate": np.minimum.accumulate,
    "scipy.fft": lambda x: scipy.fft.dct(x),
    "scipy.ndimage": lambda x: scipy.ndimage.correlate1d(x, [1.0, 2.0]),
    "scipy.spatial.distance": lambda x: scipy.spatial.distance.pdist(x.reshape(3, 2)),
    "math.log(x, b)": lambda x: math.log(x[1], x[3]) * x,
    "math.frexp": lambda x: math.frexp(x[3])[0] * x,
    "math.modf": lambda x: math.modf(x[3])[0] * x,
    "math.ldexp": lambda x: math.ldexp(x[3], 2) * x,
    "math.copysign": lambda x: math.copysign(x[3], x[4]) * x,
    "math.dist": lambda x: math.dist([x[0], x[1]], [x[2], x[3]]) * x,
    "math.fsum": lambda x: math.fsum([x[0], x[1]]) * x,
    "cmath.log(z, b)": lambda x: cmath.log(complex(x[0], x[1]), x[3]).real * x,
    "cmath.polar": lambda x: cmath.polar(complex(x[0], x[1]))[0] * x,
    "cmath.phase": lambda x: cmath.phase(complex(x[0], x[1])) * x,
    "cmath.rect": lambda x: cmath.rect(x[0], x[1]).real * x,
    'pad(mode="linear_ramp")': lambda x: np.pad(x, 2, mode="linear_ramp"),
    'quantile(method="nearest")': lambda x: np.quantile(x, 0.3, method="nearest") * x,
}
LENGTHS_AS_NUMBERS = ('linalg.qr(mode="complete")', "ufunc.accumulate")
WRITTEN_OUT = {
    "sums": np.cumsum,
    "numbers": lambda x: math.hypot(x[0], x[1]) * cmath.exp(complex(x[0], x[1])).real * x,
    "transforms": lambda x: np.fft.ifft(np.fft.fft(x) * x).real,
    "real transforms": lambda x: np.fft.irfft(np.fft.rfft(x) * x[0]) * np.fft.irfft(x)[:2].sum(),
    "slices": lambda x: np.add.reduceat(x * x, [0, 2]),
    "scipy.linalg": lambda x: scipy.linalg.solve(square(x), x),
    "values": lambda x: np.linalg.svd(TABLE * x[0], full_matrices=False)[1] * x[1],
}


# -- "What is not run backwards"

BACKWARDS = []
"""A part of the item, a function of X, and a part of the message."""


def not_backwards(item, says):
    """Enter a function; the line that is marked by ``# here`` is the one that is named."""

    def enter(f):
        BACKWARDS.append((item, says, f))
        return f

    return enter


@not_backwards("takes the name of one from outside on some paths only", "changes places")
def made_in_a_loop(x):
    a = x * 2.0
    b = a
    for k in range(3):  # here
        if x[k] > 1.0:
            a = a * 1.5
        a[k] = x[0] * x[1]
    b[0] *= a[1]
    return np.sum(a * a) + np.sum(b * b)


@not_backwards("that a loop makes and returns", "changes places")
def returned_early(x):
    def clipped(y):
        for i in range(len(y)):  # here
            y[i] *= 2.0
            if y[i] > 3.0:
                return y * y[i]
        return y

    return np.sum(clipped(x * 2.0) ** 2)


@not_backwards("where they are no slices of one kind", "chosen by a branch")
def views_of_two_kinds(x):
    m = np.outer(x, x)
    w = m[1] if x[0] > 0 else m[:, 2]  # here
    w[0] = x[3] ** 2
    return np.sum(m * m)


@not_backwards("at a tuple of other things than arrays of one axis", "multiply")
def multiplied_at_a_mask(x):
    m = np.outer(x, x)
    np.multiply.at(m, (slice(0, 2), np.array([0, 1])), x[:2])  # here
    return np.sum(m)


@not_backwards('a store through `ravel(order="K")`', "view")
def raveled_as_it_lies(x):
    m = np.outer(x, x)
    d = m.ravel(order="K")
    d[:6] = x  # here
    return np.sum(m * m)


@not_backwards("a gradient of a gradient through `ravel`", "overwrites an array")
def gradient_of_a_gradient(x):
    def f(x):
        m = np.outer(x, x).T
        s = np.sum(m.ravel() ** 3)  # here
        m[1, 0] = x[2] ** 3
        return s + np.sum(m * m)

    return fwdad.grad(f)(x) @ x


@not_backwards("in a loop or a branch, what `ravel` or `reshape` returns", "may be a copy")
def read_before_it_is_written(x):
    m = np.outer(x, x).T
    s = 0.0
    for k in range(2):
        y = m[:, ::2].ravel()
        m[k, 0] = x[k] ** 3
        s = s + np.sum(y * y)  # here
    return s


def cubed(x):
    return x**3


@fwdad.frule(cubed, returns="either")
def cubed_frule(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return x**3, 3 * x**2 * x_dot


@not_backwards("what a function of the user's returns", "may be a view")
def argument_of_a_rule_is_written(x):
    a = x * 1.0
    y = cubed(a)
    a[0] = x[1] * x[2]
    return np.sum(y * y) + np.sum(a)  # here


def quartic(x):
    return x**4


@fwdad.frule(quartic)
def quartic_frule(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return x**4, fwdad.Chunk(4 * x**3 * x_dot.lanes)


@not_backwards("a rule without a transpose", "reads the lanes of its tangents")
def rule_for_lanes(x):
    return np.sum(quartic(x))  # here


@not_backwards("(raises when it runs)", "C-contiguous")
def view_on_columns(x):
    m = np.zeros((6, 6), order="F")
    m[:] = np.outer(x, x)
    w = m.T.reshape(-1)
    w[3] = x[0] * x[1]  # here
    return np.sum(m * m * m)


@not_backwards("recursion that returns its argument", "calls itself")
def returned_by_a_recursion(x):
    def halved(a, n):
        if n == 0:
            return a
        a[n] *= 0.5
        return halved(a, n - 1)

    a = x * x
    b = halved(a, int(np.sum(x > 0)) - 3)  # here
    b[0] = a[1] * x[2]
    return np.sum(a * a)


# -- "What differs"


def columns(a):
    return a.T * 2.0


def order_of_columns(a):
    b = a.T * 2.0
    return b.ravel(order="K"), b.reshape(-1), (b + 1.0).ravel(order="A")


def padded(a):
    return np.pad(a, 1)


def padded_by_edges(a):
    return np.pad(a, 1, mode="edge")


def solution(a, x):
    return np.sum(scipy.linalg.lstsq(a, x)[0] ** 2)


def residuals(a, x):
    return np.sum(scipy.linalg.lstsq(a, x)[1])


# -- "What is assumed"


def selected(x, t):
    return x[x > t] + np.arange(3.0)


def of_known_lengths(a, b):
    return np.linalg.tensorsolve(a, b)


def written_behind(view):
    """A view by ``view`` on a matrix that is written later."""

    def f(x):
        m = np.outer(x, x)
        v = view(m)
        m[1, 0] = x[2] ** 3
        m[2, 2] = x[1] * 7.0
        return np.sum(v * v)

    return f


FOLLOWED = {
    "`reshape`": lambda m: m.reshape(-1),
    "`ravel`": np.ravel,
    "`transpose`": np.transpose,
    "`diag`": np.diag,
    '`einsum("ii->i", a)`': lambda m: np.einsum("ii->i", m),
    "`einsum(a, [1, 0], [0, 1])`": lambda m: np.einsum(m, [1, 0], [0, 1]),
}
NOT_FOLLOWED = {
    "`sliding_window_view`": lambda m: np.lib.stride_tricks.sliding_window_view(m, 3, axis=0),
    "`ascontiguousarray`": np.ascontiguousarray,
}


def lanes_row_by_row(x):
    """Views and copies, told by how the arrays themselves lie."""
    m = np.outer(x, x)
    m[0, 1] = x[2]
    v, w = m.reshape(-1), m.T.reshape(-1)
    v[7] *= x[0]
    w[8] *= x[1]
    return np.sum(m * m) + np.sum(w * w)


def view_the_lanes_do_not_have(x):
    m = np.zeros((6, 6), order="F")
    m[:] = np.outer(x, x)
    w = m.reshape(-1, order="F")
    w[3] = x[0] * x[1]
    return np.sum(m * m * m)


def undefined_on_the_other_way(x, c):
    _, vectors = np.linalg.eigh(np.eye(3) * x[0])
    return np.sum(vectors) * x[1] if c > 0 else x[0] * 2.0


def doubled(a, n):
    b = a
    for _ in range(n):
        b = b * 2.0
    return b


def small_product(a, b):
    return np.stack((a, b)) @ np.stack((b, a)).T
