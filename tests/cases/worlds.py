"""Functions that keep state: in objects with work arrays, and in caches."""

import functools
import types

import numpy as np

# -- objects with work arrays


class Simulation:
    def __init__(self, n=5):
        self.u = np.linspace(0.0, 1.0, n)
        self.flux = np.zeros(n + 1)
        self.k = 0.5
        self.steps = 0
        self.history = []
        self.options = {"dt": 0.1, "limits": [0.0, 1.0]}
        self.inner = types.SimpleNamespace(last=None, best=np.float64(9.0))

    def run(self, x):
        self.u[:] = x
        self.k = x[0] * self.k
        for _ in range(3):
            self.flux[1:-1] = self.k * (self.u[1:] - self.u[:-1])
            self.u += self.options["dt"] * (self.flux[1:] - self.flux[:-1])
            self.steps += 1
            self.history.append(self.u.sum())
            self.options["limits"][1] = self.u[0]
            self.inner.last = self.history[-1]
            self.inner.best = min(self.inner.best, self.u[2])
        self.options["dt"] = x[1]
        self.extra = x
        return self.u * self.history[-1] * self.steps + self.inner.best * self.options["limits"][1]


def simulation():
    s = Simulation()
    return s.run, lambda: vars(s)


class Slotted:
    __slots__ = ("absent", "k", "u")

    def __init__(self):
        self.u = np.zeros(5)
        self.k = 2.0

    def __call__(self, x):
        self.absent = x[0]
        self.k *= x[1]
        self.u[::2] = x[::2] * self.k
        return self.u * self.absent


def slotted():
    s = Slotted()
    return s, lambda: [s.u, s.k, hasattr(s, "absent")]


class WithProperty:
    count = 0
    shared = np.zeros(2)

    def __init__(self):
        self._rate = 1.0

    @property
    def rate(self):
        return self._rate

    @rate.setter
    def rate(self, value):
        self._rate = value * 2.0
        type(self).count += 1

    def __call__(self, x):
        self.rate = x[0]
        self.rate *= x[1]
        WithProperty.shared[0] += x[2]
        setattr(self, "dynamic", self.rate)  # noqa: B010
        self.__dict__["hidden"] = x[3]
        return x * self.dynamic * self.hidden * self.shared[0] * self.count


def with_property():
    w = WithProperty()
    return w, lambda: [vars(w), WithProperty.count, WithProperty.shared]


def attribute_deleted():
    holder = types.SimpleNamespace(a=1.0, b=[2.0])

    def f(x):
        del holder.a
        delattr(holder, "b")
        holder.c = x[0]
        holder.a = holder.c * x[1]
        return x * holder.a

    return f, lambda: vars(holder)


# -- caches


class Rates:
    def __init__(self):
        self.k = 1.5
        self.computed = 0

    @functools.cached_property
    def table(self):
        self.computed += 1
        return np.array([self.k, self.k**2, np.sin(self.k)])

    def __call__(self, x):
        self.k = x[0]
        return self.table.sum() * x * self.table[1] * self.computed


def cached_property():
    r = Rates()
    return r, lambda: vars(r)


@functools.lru_cache(maxsize=32)
def slow_square(v):
    return v * v * 1.5


def lru_cached():
    slow_square.cache_clear()
    slow_square(0.7)  # the plain value is in the cache, at the point that is asked for
    slow_square(np.float64(-1.3))

    def f(x):
        return np.array([slow_square(v) for v in x]) * slow_square(x[0])

    return f, lambda: slow_square.cache_info().currsize


def cache_in_a_dict():
    memo = {}

    def fibonacci(i, x):
        if i not in memo:
            memo[i] = x[i] if i < 2 else fibonacci(i - 1, x) + x[2] * fibonacci(i - 2, x)
        return memo[i]

    return lambda x: x * fibonacci(8, x), lambda: memo


def cached_method():
    class Model:
        @functools.cache  # noqa: B019 - it is what people write
        def weights(self, k):
            return np.exp(-k * np.arange(5.0))

    m = Model()
    return (
        lambda x: m.weights(x[0]) * m.weights(x[0]) * x,
        lambda: Model.weights.cache_info().currsize,
    )


class FirstCallWins:
    """Keeps what it first computed: a cache that kept the plain value would return 0 next time."""

    def __init__(self):
        self.kept = None

    def __call__(self, x):
        if self.kept is None:
            self.kept = np.cumsum(x**2)
        return self.kept * x


def first_call_wins():
    f = FirstCallWins()
    return f, lambda: vars(f)
