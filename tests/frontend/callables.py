"""Programs that call functions: closures, partial, recursion, decorators."""

import functools
import inspect
import math
import operator
import types
from collections.abc import Callable
from functools import partial, reduce

import numpy as np

from tests.frontend.agreement import Programs

PROGRAMS = program = Programs()
V = np.array([0.5, -1.25, 2.0, 3.5])
W = np.array([2.0, 0.1, -4.0, 1.0, 7.0, 0.25])
RATE = 0.75
SWITCH = True


def logged(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return f(*args, **kwargs) + 1

    return wrapper


@logged
def decorated(x, y=2.0):
    return x * y


def tree(depth, x):
    if depth == 0:
        return x
    return tree(depth - 1, x * 2) + tree(depth - 1, x + 1)


def horner(coefficients, x):
    return reduce(lambda s, c: s * x + c, coefficients, 0.0)


two_lambdas = (lambda x: x + 1, lambda x: x * 3)


@program((1.0,), (2.0,))
def closure(x):
    def g(y):
        return x * y

    x = x + 1
    return g(2.0) + g(x)


@program((1.0, 3), (2.0, 0))
def nonlocal_counter(x, n):
    total = 0.0

    def add(y):
        nonlocal total
        total += y
        return total

    for k in range(n):
        add(x * k)
    return total


@program((1.0,), (2.0,))
def lambdas_in_a_line(x):
    f, g = lambda t: t + x, lambda t: t * x
    return f(2.0), g(3.0), two_lambdas[0](x), two_lambdas[1](x)


@program((1.0,), (2.0,))
def defaults(x):
    def g(a, b=x, *, c=3.0):
        return a * b - c

    x = 10.0
    return g(1.0), g(1.0, 2.0), g(a=1.0, c=x)


@program((1.0, 2.0), (2.0, 5.0))
def args_and_kwargs(x, y):
    def g(a, *rest, k=1.0, **others):
        return a + sum(rest) * k + others.get("z", 0.0), len(rest), sorted(others)

    return g(x), g(x, y, y, k=2.0), g(x, *[y, x], **{"z": y})


@program((1.0,), (2.0,))
def partial_and_reduce(x):
    f = partial(math.pow, x)
    g = partial(lambda a, b, c: a * b - c, x, c=2.0)
    return f(2.0), g(3.0), reduce(operator.mul, [x, 2.0, 3.0]), horner([1.0, x, 3.0], x)


@program((1.0, 4.0), (2.0, -1.0))
def map_and_filter(x, y):
    doubled = list(map(lambda t: t * 2, [x, y]))
    kept = list(filter(lambda p: p[0] > 1, [(1, x), (2, y)]))
    return doubled, kept, list(map(operator.add, [x, y], [1, 2])), sum(map(math.sin, (x, y)))


class Scaled:
    """Methods of which programs ask questions."""

    rate = 3.0

    def meth(self, v, w=2.0):
        """Scale v."""
        return v * self.rate * w

    def again(self):
        return self.meth


class Doubled(Scaled):
    def meth(self, v):
        above = super().meth
        return above(v) * (1.0 if callable(above) and above.__name__ == "meth" else 7.0)


scaled, doubled = Scaled(), Doubled()
kept_method = scaled.meth


@program((1.0,), (2.0,))
def questions_about_methods(x):
    m = scaled.meth
    answers = (
        callable(m), hasattr(m, "__call__"), hasattr(m, "rate"), callable(Scaled().meth),
        m.__name__, m.__qualname__, m.__doc__, m.__defaults__, getattr(m, "__name__", "?"),
        m.__self__ is scaled, m.__func__ is Scaled.meth, m.__class__ is types.MethodType,
        isinstance(m, types.MethodType), isinstance(m, types.FunctionType), type(m).__name__,
        isinstance(m, Callable), inspect.ismethod(m), inspect.isfunction(m),
    )  # fmt: skip
    return x * (1.0 if callable(m) else 2.0), m.__func__(scaled, x), doubled.meth(x), answers


@program((1.0,), (2.0,))
def methods_that_are_compared(x):
    same = scaled.meth == scaled.meth, scaled.meth == kept_method, kept_method == scaled.again()
    others = scaled.meth == doubled.meth, scaled.meth != scaled.again, scaled.meth is scaled.meth
    table = {kept_method: x, scaled.again: 2.0 * x}
    inside = scaled.meth in (doubled.meth, kept_method)
    return same, others, table[scaled.meth], table[scaled.again], inside


@program((V,), (W,))
def questions_about_methods_of_arrays(a):
    total, mean = a.sum, np.ones(2).mean
    answers = callable(total), callable(mean), hasattr(total, "__call__"), hasattr(total, "node")
    names = total.__name__, total.__qualname__, total.__doc__ == np.ndarray.sum.__doc__
    kinds = isinstance(a.sum, Callable), callable(a[0].conjugate), callable(a), callable(a[0])
    return a * (1.0 if all(answers[:3]) else 2.0), answers, names, kinds, total(), mean()


@program((1.0,), (2.0,))
def questions_about_functions_inside(x):
    def g(t):
        return t * x

    cached, looped = functools.lru_cache(g), np.vectorize(g)
    items = iter([x])
    answers = (
        callable(g), callable(cached), callable(looped), hasattr(g, "__qualname__"),
        callable(items.__next__), callable([x].append), callable(items), callable([g]),
        isinstance(g, Callable), isinstance(g, types.FunctionType), type(g).__name__,
    )  # fmt: skip
    return cached(2.0), answers, functools.wraps(scaled.meth)(lambda v: v + x).__name__


@program((1.0,), (2.0,))
def signatures(x):
    m, f = inspect.signature(scaled.meth), inspect.signature(Scaled.meth)
    return x * len(m.parameters), list(m.parameters), list(f.parameters)


@program((1.0,), (2.0,))
def decorated_function(x):
    return decorated(x), decorated(x, y=x)


@program((1.0,), (2.0,))
def recursion_of_known_depth(x):
    return tree(3, x)


@program((V,), (W,))
def recursion_over_slices(a):
    def total(n):
        return 0.0 if n == 0 else a[n - 1] + total(n - 1)

    return total(3)


@program((1.0,), (2.0,))
def functions_in_a_dict(x):
    table = {"sin": math.sin, "square": lambda t: t * t}
    return table["sin"](x) + table["square"](x)


@program((math.sin, 1.0), (math.sin, 2.0))
def function_argument(f, x):
    return f(x) * 2


@program((1.0,), (2.0,))
def function_that_makes_functions(x):
    def make(k):
        def g(t):
            return t * k + x

        return g

    fs = [make(k) for k in range(3)]
    return [f(1.0) for f in fs]


@program((1.0,), (0.1,), (-3.0,))
def math_functions(x):
    y = abs(x) + 0.25
    return (math.sin(x), math.cos(x), math.exp(x), math.log(y), math.sqrt(y), math.atan2(x, y),
            math.hypot(x, y), math.erf(x), math.gamma(y), math.pow(y, x), math.fabs(x),
            math.copysign(1.0, x), math.fmod(x, 0.3), math.floor(x), math.isnan(x), math.pi * x,
            math.log2(y), math.log1p(y), math.expm1(x), math.tanh(x), math.degrees(x))  # fmt: skip


@program((1.0,), (2.0,))
def captured_global(x):
    return x * RATE


@program((1.0,), (2.0,))
def function_defined_under_a_condition(x):
    if SWITCH:

        def g(t):
            return t + 1
    else:

        def g(t):
            return t - 1

    return g(x)


@program((1.0,), (-2.0,))
def different_functions_on_two_sides(x):
    y = math.sin(x) if x > 0 else math.cos(x)
    return y


@program((1.0,), (2.0,))
def imports_inside(x):
    import math as m
    from math import cos

    return m.sin(x) + cos(x)


@program((1.0,), (2.0,))
def print_is_left_out(x):
    y = x + 1
    return y


@program((2.0, 3), (3.0, 2), (2.0, 0))
def integral_by_a_callback(x, n):
    def integrate(f, a, b):
        h = (b - a) / 4
        return h * sum(f(a + (k + 0.5) * h) for k in range(4))

    return integrate(lambda t: t**n, 0.0, x)


@program((2.0,), (9.0,), (0.25,))
def newton_with_a_callback(a):
    def newton(f, df, x):
        for _ in range(50):
            step = f(x) / df(x)
            x -= step
            if abs(step) < 1e-12:
                return x
        raise RuntimeError("no convergence")

    return newton(lambda x: x * x - a, lambda x: 2 * x, 1.0)


@program((V, 0.1, 5), (W, 0.2, 0), (V, 0.01, 20))
def runge_kutta(u, h, n):
    def rhs(t, y):
        return -y * t + np.sin(y)

    t = 0.0
    for _ in range(n):
        k1 = rhs(t, u)
        k2 = rhs(t + h / 2, u + h / 2 * k1)
        k3 = rhs(t + h / 2, u + h / 2 * k2)
        k4 = rhs(t + h, u + h * k3)
        u = u + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        t += h
    return t, u


@program((1.0, 2.0), (3.0, -4.0))
def operators_as_functions(x, y):
    return operator.add(x, y), operator.neg(x), operator.itemgetter(1)((x, y)), operator.lt(x, y)
