"""Random programs of arrays of several ranks: broadcast, cut, joined, summed, stored into."""

import linecache

import numpy as np

X = np.linspace(0.3, 1.7, 6)
C = np.arange(1.0, 4) / 2.3
_ELEMENTWISE = ("sin", "tanh", "cos")


class _Writer:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.values = [("x", (6,)), ("c", (3,))]
        self.lines = []

    def pick(self, fits=lambda _shape: True):
        found = [v for v in self.values if fits(v[1])]
        return found[self.rng.integers(len(found))] if found else (None, ())

    def write(self, expression, shape):
        if len(shape) <= 3 and 0 < np.prod(shape, dtype=int) <= 80:
            name = f"v{len(self.lines)}"
            self.lines.append(f"{name} = {expression}")
            self.values.append((name, tuple(shape)))

    def combined(self, a, s):
        b, t = self.pick()
        if len(t) == 1 and (len(s) == 2 or (s and s != t)) and self.rng.random() < 0.5:
            b, t = f"{b}[:, {', '.join(['None'] * len(s))}]", (t[0], *(1,) * len(s))
        try:
            shape = np.broadcast_shapes(s, t)
        except ValueError:
            return
        form = ("{} + {}", "{} - {}", "{} * {}", "{} * {}", "{} / (2 + {}**2)")
        self.write(form[self.rng.integers(5)].format(a, b), shape)

    def part(self, a, s):
        i, last = self.rng.integers(s[0]), s[-1]
        options = [
            (f"{a}[{i}]", s[1:]), (f"{a}[{i}:]", (s[0] - i, *s[1:])), (f"{a}[::-1]", s),
            (f"{a}[None]", (1, *s)), (f"{a}[..., None]", (*s, 1)), (f"{a}.T", s[::-1]),
            (f"{a}[..., {self.rng.integers(last)}]", s[:-1]), (f"{a}[[0, -1]]", (2, *s[1:])),
            (f"{a}.reshape(-1)", (int(np.prod(s)),)),
            (f"np.concatenate([{a}, {a}[:1]])", (s[0] + 1, *s[1:])),
            (f"np.array([{a}, 2 * {a}])", (2, *s)),
        ]  # fmt: skip
        self.write(*options[self.rng.integers(len(options))])

    def summed(self, a, s):
        axis, keep = int(self.rng.integers(len(s))), bool(self.rng.random() < 0.4)
        shape = [1 if k == axis else n for k, n in enumerate(s) if keep or k != axis]
        self.write(f"{a}.sum(axis={axis}, keepdims={keep})", shape)

    def fresh(self, a, s):
        """An array of its own that may be written into: made in one of many ways, of one shape."""
        every = list(range(s[0]))
        forms = (
            "{a}.copy()", "{a} + 0", "np.array({a})", f"{{a}}[{every[::-1]}]",
            "np.sort({a}, axis=0)", f"np.take({{a}}, {every}, axis=0)",
            "np.where({a} > 1, {a}, 0.5)", "{a}.flatten().reshape({s})", "np.zeros({s})",
            "np.concatenate([{a}[1:], {a}[:1]])", "np.stack(list({a}))", "np.flip({a}, 0) * 1",
            "np.repeat({a}, 2, axis=0)[::2]", "np.broadcast_to({a}, (2, *{s}))[1].copy()",
            "np.tile({a}.reshape(-1), 2)[:{a}.size].reshape({s})", "np.roll({a}, 1, axis=0)",
            "{a}[np.argsort({a}.reshape({m}, -1)[:, 0])]", "np.full({s}, {a}.reshape(-1)[0])",
            "np.empty_like({a})",
        )  # fmt: skip
        form = forms[self.rng.integers(len(forms))]
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = " + form.format(a=a, s=s, m=s[0]))
        if "empty" in form:
            self.lines.append(f"{name}[...] = 2 * {a}")
        self.values.append((name, s))
        return name

    def target(self, name, s):
        """Where something is stored, and the shape of what fits there."""
        n, k = s[0], self.rng.integers(s[0])
        options = [
            (f"{name}[{k}:]", (n - k, *s[1:])), (f"{name}[{k}]", s[1:]), (f"{name}[...]", s),
            (f"{name}[::-1]", s), (f"{name}[::2]", ((n + 1) // 2, *s[1:])),
            (f"{name}[{name} > 1]", ()), (f"{name}[[0, -1]]", (2, *s[1:])),
            (f"{name}.T[0]", s[:-1][::-1]), (f"{name}[-1, ...]", s[1:]),
            (f"{name}.reshape(-1)[{k}:]", (int(np.prod(s)) - k,)),
        ]  # fmt: skip
        return options[self.rng.integers(len(options))]

    def stored(self, a, s):
        name = self.fresh(a, s)
        for _ in range(self.rng.integers(1, 4)):
            where, shape = self.target(name, s)
            b, _ = self.pick(lambda t, own=shape: t == own)
            value = b if b is not None and self.rng.random() < 0.7 else "x[1]"
            op = ("=", "+=", "*=", "-=", "/=")[self.rng.integers(5)]
            self.lines.append(f"{where} {op} {value}" + (" ** 2 + 1" if op == "/=" else ""))

    def looped(self, a, s):
        name = f"v{len(self.lines)}"
        self.lines += [
            f"{name} = {a}.copy()",
            f"for i in range({s[0]} - 1):",
            f"    {name}[i + 1] = {name}[i + 1] * 0.5 + np.sin({name}[i])",
        ]
        self.values.append((name, s))

    def multiplied(self, a, s):
        b, t = self.pick(lambda t: len(t) == 2 and len(s) == 2 and t[0] == s[1])
        if b is not None:
            self.write(f"{a} @ {b}", (s[0], t[1]))


def random_arrays(seed):
    """A function of ``(x, c)``, of lengths 6 and 3, and its source."""
    w = _Writer(seed)
    for _ in range(w.rng.integers(5, 13)):
        a, s = w.values[-1] if w.rng.random() < 0.5 else w.pick()
        step = w.rng.integers(14)
        if step < 5 or not s:
            w.combined(a, s)
        elif step < 6:
            w.write(f"np.{_ELEMENTWISE[w.rng.integers(3)]}({a})", s)
        elif step < 10:
            w.part(a, s)
        else:
            (w.summed, w.stored, w.looped, w.multiplied)[step - 10](a, s)
    body = "\n    ".join([*w.lines, f"return {w.values[-1][0]}"])
    source, filename = f"def f(x, c):\n    {body}\n", f"<random arrays {seed}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    names = {"np": np}
    exec(compile(source, filename, "exec"), names)
    return names["f"], source
