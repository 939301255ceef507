"""Programs of Python's mathematics, of scalars, and of NumPy's own ways."""

import math

import numpy as np

from tests.cases.check import programs

NUMERICS, program = programs()

X = np.array([0.7, -1.3, 2.1, 0.4, 1.6])

# -- scalars and mathematics


@program(0.7)
def mathematics(x):
    y = math.sin(x) + math.exp(-x) * math.log(x + 2) + math.sqrt(x) + math.atan2(x, 2.0)
    y += (
        math.pow(x, 1.5) + math.hypot(x, 2.0) + math.erf(x) + math.lgamma(x + 3) + math.gamma(x + 2)
    )
    y += (
        math.tanh(x) * math.pi
        + math.log1p(x)
        + math.expm1(x)
        + math.degrees(x)
        + math.log(x + 2, 3)
    )
    y += math.fabs(-x) + math.floor(x) + math.ceil(x) + math.copysign(x, -1.0) + math.fmod(5 * x, 3)
    y += (
        math.asin(x)
        + math.acosh(x + 2)
        + math.cbrt(x)
        + math.log10(x + 1)
        + math.fsum([x, x * x, 1.0])
    )
    y += (
        math.dist([x, 1.0], [2.0, x]) + math.prod([x, x, 3.0]) + math.ldexp(x, 3) + math.log2(x + 1)
    )
    if math.isfinite(x) and not math.isnan(x) and math.isclose(x, x):
        y *= x
    return y


@program(0.7)
def scalar_builtins(x):
    y = pow(x, 3) + abs(-x) + sum((x, x), start=x) + max(x, 0.5) * min(x, 5.0, x * 10)
    y += divmod(7 * x, 2)[1] + (7 * x) % 2 + (7 * x) // 2 + x.real + x.conjugate() + 2**x
    y += float(x) + complex(x, 2.0).real + round(x) + round(x * 1.0, 1) - -x + +x
    y += (1 if x else 0) * x + (x == x) * x + (x != 0.5) + x.is_integer() + bool(x)
    return y * list(map(float, [x, 2]))[0]


@program(0.7)
def complex_scalars(x):
    z = complex(x, x * x) * (2 - 1j)
    w = z**2 / (z.conjugate() + 1.0)
    return np.array([w.real, w.imag, abs(z), np.angle(w), (np.exp(1j * x) * w).imag])


@program(X)
def numpy_scalars(x):
    a = x[0].item() * np.float64(2.0)
    b = np.sin(x[1]) + x[1].real + x.item(2)
    c = [v * 2.0 for v in x.tolist()]
    d = float(x[3]) * a
    return np.array(
        [a, b, *c, d, np.asarray(x[4]), np.float64(x[0]), x[1].astype(float), x[2].sum()]
    )


# -- NumPy's own ways


@program(X, products=True)
def methods_of_arrays(x):
    y = x.reshape(5, 1) * x
    return np.array(
        [
            y.sum(), y.mean(), y.max(), y.T[0].min(), y.ravel()[7], y.std(), y.var(axis=0)[1],
            y.prod(), y.trace(), y.flatten().cumsum()[-2], y.diagonal()[3], y.clip(0.0, 2.0).sum(),
            y.argmax() * x[0], y.take([3, 4]).sum(), x.dot(x), y.squeeze().swapaxes(0, 1)[2, 1],
            x.repeat(2)[3], y.any() * x[1], x.round().sum() + x[0], x.astype(np.float64)[2],
            y.compress([1, 0, 1], axis=0).sum(), x.nonzero()[0].sum() * x[4],
        ]
    )  # fmt: skip


@program(X, products=True)
def ufunc_methods(x):
    return np.concatenate(
        (
            np.add.accumulate(x),
            np.multiply.accumulate(x),
            [np.multiply.reduce(x), np.add.reduce(x, initial=x[0]), np.maximum.reduce(x)],
            np.multiply.outer(x, x[:2]).ravel(),
            np.add.reduceat(x * x, [0, 2, 3]),
        )
    )


@program(X)
def functions_over_arrays(x):
    vectorised = np.vectorize(lambda v: v * v if v > 0 else -v)
    rows = np.apply_along_axis(lambda row: row * row.sum(), 1, x.reshape(1, 5))
    parts = np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v**3])
    chosen = np.select([x < 0, x < 1], [x**2, np.sin(x)], default=x[0])
    made = np.fromiter((v * 2.0 for v in x), dtype=float)
    built = np.fromfunction(lambda i, j: x[0] * i + j, (2, 2))
    reduced = np.apply_over_axes(np.sum, x.reshape(1, 5) ** 2, [0, 1])
    return np.concatenate(
        [vectorised(x), *rows, parts, chosen, made, built.ravel(), reduced.ravel()]
    )


@program(X, products=True)
def numpy_written_in_python(x):
    a = np.vstack((x, x[::-1] ** 2, np.cos(x)))
    return np.concatenate(
        (
            np.gradient(x, 0.5),
            np.diff(x, n=2),
            np.cov(a).ravel(),
            [
                np.average(x, weights=x**2),
                np.median(x),
                np.percentile(x, 30),
                np.ptp(x),
                np.trapezoid(x),
            ],
            np.polyval(x, [0.5, x[0]]),
            np.hstack(np.meshgrid(x[:2], x[2:4])).ravel(),
            np.corrcoef(a)[0],
            np.cross(x[:3], x[2:]),
            np.polyfit(np.arange(5.0), x, 2),
            np.unwrap(x * 3.0),
            np.tile(x, 2),
            np.rot90(a)[0],
            np.pad(x, 2, mode="reflect"),
            np.interp([0.5, 1.5], np.arange(5.0), x),
            np.append(x, x[0]),
            np.insert(x, 1, x[2]),
            np.delete(x, 2),
            np.block([[x[:1], x[1:3]]])[0],
        )
    )


@program(X)
def shape_dependent(x):
    out = [v for row in np.ndindex(2, 2) for v in (x[row[0]] * x[row[1]],)]
    out += [v for _, v in np.ndenumerate(x.reshape(1, 5))]
    out += [np.float64(len(x)) * x[0], x.size * x[1], x.nbytes * x[2], x.ndim * x[3]]
    out += [
        x.dtype.type(2) * x[0],
        np.zeros(x.shape)[0] + x[1],
        np.full(2, x[2])[1],
        np.ones_like(x)[0],
    ]
    return np.array([*out, np.array([[x[0], 1], [x[1], x[2]]]).sum(), np.asarray([x, x]).sum()])
