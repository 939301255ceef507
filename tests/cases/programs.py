"""Programs as people write them: every feature of Python between the input and the output.

Each is smooth near its point, so that differences of the plain program are its reference.
"""

import collections
import contextlib
import functools
import heapq
import itertools
import math
import operator

import numpy as np

from tests.cases.check import programs
from tests.cases.objects import Point

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
    view = collections.deque(maxlen=3)
    total = x[0] * 0.0
    for value in itertools.chain(x, x[:1]):
        view.append(value)
        total = total + view[0] * view[-1]
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
