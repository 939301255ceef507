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

    def stored(self, a, s):
        b, t = self.pick(lambda t: t in (s, s[1:], ()))
        if b is None:
            return
        k, op = self.rng.integers(s[0]), ("=", "+=", "*=")[self.rng.integers(3)]
        name = f"v{len(self.lines)}"
        target, value = (f"{name}[{k}:]", f"{b}[-1:]") if t == s else (f"{name}[{k}]", b)
        self.lines += [f"{name} = {a}.copy()", f"{target} {op} {value}"]
        self.values.append((name, s))

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
