"""Expressions of random programs: numbers, vectors and matrices of what is in scope."""

import itertools


class Expressions:
    """Writes expressions. Variables are scalars, vectors of length N and N by N matrices."""

    def __init__(self, pick, n):
        self.pick = pick
        self.n = n
        self.lines = []
        self.depth = 1
        self.names = {"s": ["x[0]", "c0"], "v": ["x", "p", "G"], "m": ["H"]}
        self.counter = itertools.count(1)

    # -- pieces

    def new(self, kind):
        return f"{kind}{next(self.counter)}"

    def var(self, kind):
        return self.pick(self.names[kind])

    def index(self):
        return str(self.pick(range(-self.n, self.n)))

    def places(self):
        """An index of N places: a permutation, or one that repeats."""
        return f"[{', '.join(self.index() for _ in range(self.n))}]"

    def mask(self):
        if self.pick(range(3)) == 0:
            return f"({self.var('v')} > {self.pick((0.123, -0.217))})"
        return f"np.array([{', '.join(self.pick(('True', 'False')) for _ in range(self.n))}])"

    def parts(self):
        """Two slices of one length."""
        length = self.pick(range(self.n + 1))
        return self.part(length), self.part(length)

    def part(self, length):
        start = self.pick(range(self.n - length + 1))
        stop = start + length
        forms = [f"{start}:{stop}", f"{stop - 1}:{start - 1 if start else ''}:-1"]
        if length == (self.n + 1) // 2:
            forms.append("::2")
        if stop == self.n and length:
            forms.append(f"{start - self.n}:")
        return self.pick(forms if length else forms[:1])

    # -- expressions

    def scalar(self, deep=2):
        v, i, m = self.var("v"), self.index(), self.var("m")
        forms = [
            f"{v}[{i}]",
            self.var("s"),
            f"{m}[{i}, {self.index()}]",
            f"{m}[{i}][{self.index()}]",
        ]
        if deep:
            a, b = self.scalar(deep - 1), self.scalar(deep - 1)
            u = self.vector(deep - 1)
            forms += [
                f"({a} + {b})",
                f"({a} - 0.5 * {b})",
                f"math.sin({a} * {b})",
                f"(np.tanh({a}) * {b})",
                f"({a} / (2.0 + {b} ** 2))",
                f"(-{a})",
                f"(+{a})",
                f"{u}.sum()",
                f"np.tanh({u} @ {v})",
                f"np.max(0.4 * np.tanh({u}) + KEYS)",
                f"float(np.mean({u}))",
                f"sum(math.tanh(t) for t in {u})",
                f"math.fsum({u})",
                f"mixed({a}, {b})",
                f"damp({a}, 2)",
                f"box({a}, b={b})",
                "box.total",
                f"({a} if {b} > 0.131 else 0.3 * {b})",
                f"functools.reduce(lambda a, b: 0.5 * a * b + a, {u}, {a})",
                f"max(0.2 * math.tanh({a}), 2.0 + math.tanh({b}))",
                f"{v}.item({self.pick(range(self.n))})",
                f"[{a}, {b}][{self.pick((0, 1))}]",
                f"np.einsum('i,ij,j', {v}, 0.2 * {m}, {u})",
                f"fwdad.derivative(lambda t: math.sin(t * {a}) * {b}, {b})",
                f"fwdad.derivative(lambda t: np.sum(np.tanh(t * {v})), {a})",
                f"(lambda q, r={b}: q * np.cos(r))({a})",
            ]
        return self.pick(forms)

    def vector(self, deep=2):
        v, m, i = self.var("v"), self.var("m"), self.index()
        forms = [v, f"{m}[{i}]", f"{m}[:, {i}]", f"{v}[::-1]", f"{m}.T[{i}]", f"{m}.diagonal()"]
        if deep:
            a, u, w = self.scalar(deep - 1), self.vector(deep - 1), self.vector(deep - 1)
            k = self.matrix(deep - 1)
            one, other = self.parts()
            forms += [
                f"({u} + {w})",
                f"({u} * 0.5 * {w})",
                f"({a} - {u})",
                f"({u} / (1.5 + {w} ** 2))",
                f"(-{u})",
                f"(+{u})",
                f"np.sin({u})",
                f"np.tanh({u} * {a})",
                f"(0.3 * {k} @ {u})",
                f"(0.3 * {u} @ {k})",
                f"np.where({self.mask()}, {u}, {w})",
                f"np.roll({u}, {self.pick((1, 2, -1))})",
                f"np.cumsum({u})",
                f"{u}[{self.places()}]",
                f"{u}[np.array({self.places()})]",
                f"np.take({u}, {self.places()}, mode='wrap')",
                f"{k}[INDEX, {self.places()}]",
                f"np.array([{', '.join(self.scalar(deep - 1) for _ in range(self.n))}])",
                f"np.concatenate([{u}[:1], {w}[1:]])",
                f"np.hstack([{a}, {u}[1:]])",
                f"(0.5 * {k}.sum(axis={self.pick((0, 1, -1))}))",
                f"np.array([t * {a} for t in {u}])",
                f"np.array([s * t for s, t in zip({u}, {w})])",
                f"np.array([s + t for s, t in 0.5 * {k}[:, :2]])",
                f"np.array(list(map(operator.mul, {u}, {w})))",
                f"np.array(list(walk({u})))",
                f"np.array([[{u}, {w}], [{w}, {v}]])[{self.pick((0, 1))}, {self.pick((0, 1))}]",
                f"np.sort(0.4 * np.tanh({u}) + KEYS[::-1])",
                f"shift({u}.copy())",
                f"shift({u} * 1.0, by=2)" if self.n > 2 else f"shift({u} * 1.0)",
                f"(np.dot({k}, {u}) * 0.2)",
                f"np.einsum('ij,j->i', {k}, 0.2 * {u})",
                f"(np.convolve({u}, {w})[:N] * 0.3)",
                f"np.add.accumulate({u})",
                f"np.interp({u}, KEYS - 1.0, {w})",
                f"np.ravel({k}, order='{self.pick(('C', 'F'))}')[{self.pick(range(self.n))}:][:N]",
                f"fwdad.jvp(lambda q: np.sin(q) * {u}, {w}, {v})[1]",
                f"fwdad.grad(lambda q: np.sum(np.tanh(q * {u})))({w})",
                f"(fwdad.jacobian(lambda q: q * np.sum(q), {u}, chunk=2) @ {w} * 0.1)",
                f"np.clip({u}, -0.413, 0.617)",
                f"np.repeat({u}, 2)[1 : N + 1]",
                f"np.linalg.solve(5.0 * np.eye(N) + np.tanh({k}), {u})",
                f"np.asarray({u}).reshape(1, N)[0]",
                f"np.apply_along_axis(lambda r: r * r[0], 0, {u})",
                f"np.concatenate([{u}[{one}], {w}[{other}], {u}])[:N]",
            ]
        return self.pick(forms)

    def matrix(self, deep=2):
        m = self.var("m")
        forms = [m, f"{m}.T", f"{m}[::-1]", f"{m}[:, ::-1]"]
        if deep:
            u, w, k, q = (
                self.vector(deep - 1),
                self.vector(deep - 1),
                self.matrix(deep - 1),
                self.matrix(deep - 1),
            )
            forms += [
                f"np.outer({u}, 0.5 * {w})",
                f"({k} + 0.5 * {q})",
                f"({k} * np.tanh({u}))",
                f"({k} * np.tanh({u})[:, None])",
                f"(0.2 * {k} @ {q})",
                f"np.diag({u})",
                f"np.stack([{', '.join([u, w, u, u][: self.n])}], axis={self.pick((0, 1))})",
                f"np.sin({k})",
                f"{k}[{self.places()}]",
                f"{k}[:, {self.places()}]",
                f"({self.scalar(deep - 1)} * {k})",
                f"np.where({self.mask()}, {k}, {q})",
                f"np.where({self.mask()}[:, None], {k}, 0.0)",
                f"{k}.ravel(order='{self.pick(('C', 'F', 'A', 'K'))}').reshape(N, N)",
                f"np.tril({k})",
                f"{k}.swapaxes(0, 1)",
                f"np.broadcast_to({u}, (N, N))",
                f"np.array([list({u})] * N)",
                f"np.vstack([{u}] * N)",
                f"(np.cumsum({k}, axis={self.pick((0, 1))}) * 0.5)",
            ]
        return self.pick(forms)
