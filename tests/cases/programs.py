"""Programs as people write them: every feature of Python between the input and the output.

Each is smooth near its point, so that differences of the plain program are its reference.
"""

import abc
import collections
import contextlib
import enum
import functools
import heapq
import itertools
import math
import operator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from tests.cases.check import programs

PROGRAMS, program = programs()

X = np.array([0.7, -1.3, 2.1, 0.4, 1.6])


# -- exceptions


@program(X[:3], products=True)
def failing_factorisation(x):
    """Shift until the matrix is positive definite."""
    a = (
        np.array([[2.0, 2.1, 0.0], [2.1, 2.0, 0.3], [0.0, 0.3, 1.0]]) * (1 + 0.1 * x[0])
        + np.diag(x**2) * 0.01
    )
    shift = 0.0
    while True:
        try:
            factor = np.linalg.cholesky(a + shift * np.eye(3))
        except np.linalg.LinAlgError:
            shift = max(2 * shift, 0.05 * np.abs(x[2]))
        else:
            return factor
        finally:
            x = x * 1.0


class BadStepError(Exception):
    def __init__(self, message, step):
        super().__init__(message)
        self.step = step


@program(X)
def exception_that_carries_a_value(x):
    def advance(step):
        if step > 0.3:
            message = "too long"
            raise BadStepError(message, step / 2)
        return step

    step = x[0]
    for _ in range(10):
        try:
            return x * advance(step)
        except BadStepError as error:
            step = error.step
    return x


@program(X)
def raise_from_and_reraise(x):
    def inner(i):
        try:
            return {0: x[0]}[i]
        except KeyError as error:
            raise IndexError(i) from error

    total = inner(0)
    try:
        inner(2)
    except (ValueError, IndexError) as error:
        total = total * x[error.args[0]]
    with contextlib.suppress(ZeroDivisionError):
        total = total * x[1]
        1 // 0  # noqa: B018
    return total


@program(0.7)
def division_by_zero_is_caught(x):
    try:
        return x / (x - x) * x
    except ZeroDivisionError:
        return 3.0 * x


# -- generators and iteration


def running(values):
    total = 0.0
    for value in values:
        total += value * value
        yield total


def averager():
    total, count = 0.0, 0
    average = None
    while True:
        value = yield average
        total, count = total + value, count + 1
        average = total / count


@program(X)
def generators(x):
    send = averager()
    next(send)
    averages = [send.send(v) for v in running(x)]
    total = sum(v * k for k, v in enumerate(averages))

    def chained():
        yield from running(x[:2])
        yield total

    return np.array(list(chained()))


@program(X)
def iteration(x):
    first, *middle, last = x
    pairs = [a * b for a, b in zip(x, x[1:], strict=False)]
    nested = [u * v for u in x for v in pairs if u * v > 0.5]
    table = {i: v for i, v in enumerate(x) if v > 0}
    return np.array([first, last, sum(middle), sum(nested), table[2] * pairs[0], *reversed(pairs)])


@program(X)
def higher_order(x):
    scale = functools.partial(operator.mul, x[0])
    product = functools.reduce(operator.mul, x, 1.0)
    mapped = list(map(scale, filter(lambda v: v > 0, x)))
    ordered = sorted(x, key=lambda v: v * v, reverse=True)
    sums = list(itertools.accumulate(x))
    largest = max(x, key=lambda v: -v)
    smallest = min(*mapped)
    shifted = list(map(lambda a, b: a * b, x, reversed(x)))
    starred = list(itertools.starmap(pow, [(x[2], 2.0), (x[0], x[3])]))
    return np.array([product, sum(mapped), *ordered, *sums, largest, smallest, *shifted, *starred])


@program(X)
def itertools_and_collections(x):
    window = collections.deque(maxlen=3)
    total = x[0] * 0.0
    for value in itertools.chain(x, x[:1]):
        window.append(value)
        total = total + window[0] * window[-1]
    groups = collections.defaultdict(list)
    for value in x:
        groups[bool(value > 1)].append(value)
    products = [math.prod(values) for values in groups.values()]
    pairs = [a * b for a, b in itertools.combinations(x[:3], 2)]
    heap = list(x)
    heapq.heapify(heap)
    two = [heapq.heappop(heap) * 2.0 for _ in range(2)]
    matrix = [p * q for p, q in itertools.product(x[:2], x[3:])]
    return np.array([total, *products, *pairs, *two, *matrix, *itertools.islice(x, 1, 3)])


@program(X)
def comprehension_scopes(x):
    scale = x[0]
    functions = [lambda v, k=k: v * scale * k for k in range(3)]
    late = [lambda v: v * scale * k for k in range(3)]  # noqa: B023 - they all see k = 2
    (y := x * x)
    return np.array([f(x[1]) for f in functions] + [f(x[2]) for f in late] + [z := y[3], z * 2.0])


# -- recursion


@program(1.3)
def ackermann_like(x):
    def grow(m, n, value):
        if m == 0:
            return value * x + n
        if n == 0:
            return grow(m - 1, 1, value)
        return grow(m - 1, 1, grow(m, n - 1, value * 0.5))

    return grow(2, 3, x)


@program(X)
def tree_walk(x):
    tree = ("+", ("*", 0, 1), ("sin", ("+", 2, ("*", 3, 4), 0)))
    functions = {"+": lambda *a: sum(a), "*": lambda *a: math.prod(a), "sin": np.sin}

    def evaluate(node):
        match node:
            case int(i):
                return x[i]
            case (name, *children):
                return functions[name](*map(evaluate, children))

    return evaluate(tree)


@program(X)
def mutual_recursion(x):
    def even(i):
        return x[0] if i == 0 else odd(i - 1) * x[i]

    def odd(i):
        return x[1] if i == 0 else even(i - 1) + np.cos(x[i])

    return even(4) * odd(3)


@program(X)
def recursive_sort(x):
    def quicksort(values):
        if len(values) < 2:
            return values
        pivot = values[0]
        less = [v for v in values[1:] if v < pivot]
        return [*quicksort(less), pivot, *quicksort([v for v in values[1:] if v >= pivot])]

    return np.array(quicksort(list(x * x))) * np.arange(1.0, 6.0)


# -- functions


@program(X)
def closures(x):
    def make(scale):
        count = 0
        total = 0.0

        def step(v):
            nonlocal count, total
            count += 1
            total = total + scale * v
            return total * count

        return step

    one, two = make(x[0]), make(x[1] * x[2])
    return np.array([one(x[3]), two(x[4]), one(2.0), two(x[0]), one(x[1])])


def doubled(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return 2.0 * f(*args, **kwargs)

    return wrapper


def scaled_by(factor):
    def decorate(f):
        return lambda *args: factor * f(*args)

    return decorate


@doubled
@scaled_by(3.0)
def decorated(a, b):
    return math.sin(a) * b


@program(X)
@doubled
def decorators(x):
    @scaled_by(x[0])
    def inner(v):
        return v * v

    return np.array([decorated(x[0], x[1]), inner(x[2]), decorated.__wrapped__(x[1], 1.0)])


@program(X)
def lambdas_on_one_line(x):
    f, g = (lambda v: v * x[0]), (lambda v: v + x[0] ** 2)
    h = lambda v: (lambda w: w * v)(v + 1.0)  # noqa: E731
    return np.array(
        [f(x[1]), g(x[1]), f(g(x[2])), h(x[3]), (lambda *a, **k: a[1] * k["b"])(x[0], x[1], b=x[2])]
    )


def blend(a, b=2.0, /, c=None, *rest, weight=0.5, **named):
    c = a if c is None else c
    return a * b + c * weight + sum(rest) + named.get("bias", 0.0)


@program(X)
def default_and_star_arguments(x):
    def power(v, n=2, scale=x[0]):
        return scale * v**n

    options = {"weight": x[3], "bias": x[4] ** 2}
    return np.array(
        [
            power(x[1]),
            power(x[1], 3),
            power(x[1], scale=1.0),
            blend(x[0]),
            blend(x[0], x[1], x[2], *x[3:], **options),
            blend(*x[:3], weight=x[1]),
        ]
    )


@program(X)
def functools_of_all_kinds(x):
    @functools.cache
    def fibonacci(i):
        return x[i] if i < 2 else fibonacci(i - 1) + x[i % 5] * fibonacci(i - 2)

    @functools.singledispatch
    def describe(value):
        return value * 2.0

    @describe.register
    def _(value: list):
        return describe(value[0]) * value[1]

    add = functools.partial(blend, x[0], weight=x[1])
    return np.array(
        [fibonacci(6), describe(x[1]), describe([x[2], x[3]]), add(x[4]), add(x[4], weight=1.0)]
    )


# -- control flow


@program(2.0)
def while_to_convergence(x):
    z = x
    while abs(z * z - x) > 1e-14 * x:
        z = 0.5 * (z + x / z)
    return z


@program(X)
def early_return_in_a_loop(x):
    total = 0.0
    for i in range(len(x)):
        for j in range(i):
            if total > 2.0:
                return total * x[i]
            if x[j] < 0:
                continue
            total += x[i] * x[j]
        else:
            total += 0.1 * x[i]
    return total


@program(X)
def loop_with_else(x):
    for v in x:
        if v > 100:
            break
    else:
        x = x * 2.0
    i = 0
    while i < 3:
        i += 1
        if i == 2:
            break
    return x * i


@program(X)
def branches(x):
    y = x[0] if x[1] < 0 < x[2] else x[3]
    y = y * (x[2] and x[4]) + (0.0 or x[3]) * (not x[0])
    if x[0] > 5 or (x[1] < 0 and x[2] >= 2.0):
        y += x[4] ** 2
    elif x[3]:
        y += 100.0
    return y


@program(X)
def matching(x):
    point = {"kind": "polar", "r": x[0], "phi": x[1], "other": 3}
    total = x[2] * 0.0
    for item in [point, (x[3], x[4]), Point(x[0], x[2]), x[1], "text", [x[0], 2.0, x[4]]]:
        match item:
            case {"kind": "polar", "r": r, "phi": phi, **rest}:
                total = total + r * np.cos(phi) * rest["other"]
            case Point(x=a, y=b) if a < b:
                total = total + a / b
            case (a, 2.0, b):
                total = total + 7.0 * a * b
            case (a, b):
                total = total + a * b
            case float():
                total = total + item**2
            case str():
                total = total + 1.0
            case _:
                total = total * 0.0
    return total


# -- classes


class Point(NamedTuple):
    x: float
    y: float = 1.0

    def norm(self):
        return np.hypot(self.x, self.y)


@dataclass
class Body:
    position: np.ndarray
    velocity: np.ndarray
    mass: float = 1.0
    trail: list = field(default_factory=list)

    def __post_init__(self):
        self.momentum = self.mass * self.velocity

    @property
    def energy(self):
        return 0.5 * self.mass * np.sum(self.velocity**2)

    def kick(self, force, dt):
        self.velocity = self.velocity + dt * force / self.mass
        self.position += dt * self.velocity
        self.trail.append(self.position.copy())


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float

    def __mul__(self, other):
        products = [
            self.low * other.low,
            self.low * other.high,
            self.high * other.low,
            self.high * other.high,
        ]
        return Interval(min(products), max(products))

    def __rmul__(self, factor):
        return Interval(factor * self.low, factor * self.high)

    def __contains__(self, value):
        return self.low <= value <= self.high

    def __neg__(self):
        return Interval(-self.high, -self.low)


@program(X, products=True)
def namedtuples_and_dataclasses(x):
    p = Point(x[0])._replace(y=x[1] * x[1])
    body = Body(x[:2] * 1.0, x[2:4] * 1.0, mass=x[4])
    for _ in range(3):
        body.kick(-body.position, 0.1)
    other = replace(body, mass=2.0)
    q = -(x[0] * (Interval(x[1], x[2]) * Interval(x[3], x[4])))
    inside = 1.0 if x[2] in Interval(x[3], 3.0) else 0.0
    scalars = [p.norm(), body.energy, other.energy, q.low, q.high * inside]
    return np.concatenate((scalars, body.trail[1], other.momentum, body.position))


class Polynomial:
    __slots__ = ("__degree", "coefficients")
    evaluations = 0

    def __init__(self, coefficients):
        self.coefficients = list(coefficients)
        self.__degree = len(self.coefficients) - 1

    def __call__(self, t):
        Polynomial.evaluations = 0
        value = 0.0
        for c in reversed(self.coefficients):
            value = value * t + c
        return value

    def __getitem__(self, i):
        return self.coefficients[i]

    def __setitem__(self, i, c):
        self.coefficients[i] = c

    def __len__(self):
        return self.__degree + 1

    def __iter__(self):
        return iter(self.coefficients)

    def __add__(self, other):
        if isinstance(other, float):
            other = Polynomial([other])
        return Polynomial(a + b for a, b in itertools.zip_longest(self, other, fillvalue=0.0))

    __radd__ = __add__

    def __matmul__(self, other):
        return Polynomial(np.convolve(self.coefficients, other.coefficients))

    @property
    def leading(self):
        return self.coefficients[-1]

    @leading.setter
    def leading(self, c):
        self.coefficients[-1] = c

    @classmethod
    def from_roots(cls, roots):
        p = cls([1.0])
        for root in roots:
            p = p @ cls([-root, 1.0])
        return p

    @staticmethod
    def clean(v):
        return v * 1.0

    def derivative(self):
        return Polynomial(i * c for i, c in enumerate(self.coefficients) if i)


@program(X, products=True)
def classes_with_operators(x):
    p = Polynomial(x)
    p[0] = p[1] * x[2]
    p.leading = p.leading**2
    q = (p + x[1]) @ Polynomial.from_roots(x[:2])
    q += 3.0
    return np.array([p(0.5), q(x[0]), len(q) * q.derivative()(x[3]), Polynomial.clean(q[2]), *p])


class Layer(abc.ABC):
    def __init__(self, width):
        self.width = width

    @abc.abstractmethod
    def apply(self, v): ...

    def __call__(self, v):
        return self.apply(v) / self.width


class Dense(Layer):
    def __init__(self, weights):
        super().__init__(len(weights))
        self.weights = weights

    def apply(self, v):
        return np.tanh(self.weights @ v)


class Residual(Dense):
    def apply(self, v):
        return v + super().apply(v)

    def __getattr__(self, name):
        if name == "gain":
            return self.weights[0, 0]
        raise AttributeError(name)


@program(np.array([[0.7, -1.3, 2.1], [0.4, 1.6, -0.9], [1.1, 0.3, -2.2]]), products=True)
def inheritance(x):
    layers = [Dense(x), Residual(x.T), Residual(x @ x)]
    v = np.array([1.0, 0.5, x[0, 0]])
    for layer in layers:
        v = layer(v)
    return v * layers[1].gain * getattr(layers[2], "missing", 2.0)


class Switch:
    """A descriptor, a context manager and an iterator in one."""

    def __set_name__(self, owner, name):
        self.slot = "_" + name

    def __get__(self, instance, owner=None):
        return getattr(instance, self.slot) * 2.0

    def __set__(self, instance, value):
        setattr(instance, self.slot, value * 3.0)


class Damper:
    rate = Switch()

    def __init__(self, rate):
        self.rate = rate
        self.entered = 0.0

    def __enter__(self):
        self.entered = self.rate
        return self

    def __exit__(self, kind, error, traceback):
        self.entered = self.entered * 2.0
        return kind is ArithmeticError

    def __iter__(self):
        for i in range(3):
            yield self.rate**i


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


@program(X)
def protocols(x):
    damper = Damper(x[0])
    with damper as d, contextlib.ExitStack() as stack:
        stack.enter_context(Damper(x[1]))
        total = d.rate * x[2]
        raise ArithmeticError
    total = total + damper.entered

    @contextlib.contextmanager
    def scaled(factor):
        damper.rate = factor
        yield damper.rate
        damper.rate = 1.0

    with scaled(x[3]) as rate:
        total = total * rate
    speeds = {Mode.FAST: x[4], Mode.SLOW: x[0]}
    return np.array(
        [total, *damper, speeds[Mode.FAST] * speeds[Mode.SLOW], vars(damper)["entered"]]
    )


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
