"""Random programs that are grown: a statement is put anywhere, and stays if the program still runs.

So the templates need not know shapes and dtypes; whatever Python takes may stand beside whatever
else: views of views, masks, repeated indices, complex parts, lists, functions that write.
"""

import copy
import linecache
import random
import warnings

import numpy as np

TRIES = 10  # for each statement
LARGEST = 30.0

SLICES = ("1:", ":-1", "::-1", "::2", "1:3", "{i}:", ":{i}", "-2:", "...", "None", "[1, 0, 1]", "0",
          "{i}", "::-2", "[0, -1]")  # fmt: skip
VIEWS = ("{a}[{at}]", "{a}[{at}]", "{a}[{at}, {at}]", "{a}.T", "{a}.reshape(-1)", "{a}[..., None]",
         "{a}.reshape(2, -1)", "{a}.real", "{a}.imag", "np.diagonal({a})", "{a}.ravel()[::-1]",
         "np.swapaxes({a}, 0, -1)", "np.broadcast_to({a}, (2, *{a}.shape))[1]", "{a}.squeeze()",
         "np.moveaxis({a}, 0, -1)[{at}]", "np.flip({a})[{at}]")  # fmt: skip
ARRAYS = ("{a} * {q}", "{a} + {v}", "{a} - 0.5 * {v}", "np.sin({v})", "{a} * s", "{v} ** 2",
          "np.where({a} > 0.1, {a}, {q})", "np.cumsum({v}, axis=0)", "{a} @ {q}", "np.abs({a})",
          "np.concatenate([{a}, {q}])", "np.einsum('ij,j->i', {a}, {q})", "np.roll({v}, 1)",
          "{a} + 1j * {q}", "np.conj({a}) * {v}", "np.exp(1j * np.real({v}))", "np.outer({a}, {q})",
          "np.add.outer({a}, {q})", "np.sum({a}, axis=0, keepdims=True) * {q}", "{v}.copy()",
          "np.multiply.reduce({a}, axis=-1, initial=0.5)", "np.max({a}, axis=0)", "np.diff({v})",
          "np.sort({v}, axis=-1)", "np.angle(2.5 + {a})", "np.tril({a})", "np.full_like({a}, s)",
          "np.arange(len(x)) * {a}", "np.mean({v}, axis=-1)", "np.zeros((len(x), 2))")  # fmt: skip
NUMBERS = ("{v}.sum() * 0.3", "np.mean({a})", "{a}.flat[-1]", "np.sin(s)", "s * 0.7", "len(x) * s",
           "np.vdot({a}, {a}).real * 0.1", "{i} * 0.2", "np.max(np.abs({a}))", "0.4")  # fmt: skip
STORES = ("{v}[...] {op} {e}", "{a}[{at}] {op} {e}", "{a}[{at}] {op} {a}[{at}]", "{a} {op} {e}",
          "{a}[{at}, {at}] {op} {q}", "{a}[{a} > 0.1] {op} {e}", "{a}[np.abs({q}) < 0.8] {op} s",
          "np.sin({q}, out={a}[::-1])", "np.add({q}, 0.3, out={a}, where={a} > 0.1)",
          "np.multiply({a}, {q}, out={a}[::-1])", "np.copyto({a}, -{q}, where={q} > 0)",
          "np.add.at({a}, [0, 0, 1], {q}[:3])", "{a}.sort()", "{v}.fill({e})")  # fmt: skip
NAMES = ("{a}, {q} = {q}, {a}", "{a}, {q} = {q}, {a}[::-1]", "{a} = {q}",
         "{a} = {q} if {c} else {a}",
         "l = [{a}, {q}]", "l[0] = {a}", "l[-1] += {e}", "l[0], l[1] = l[1], l[0]", "{a} = l[0]",
         "for each in l:\n    each *= 0.7", "d = dict(p={a}, q={q} * 0.5)", "d['p'][:1] = s",
         "d['p'], d['q'] = d['q'], d['p']", "{a} = d['q']", "{a} = mixed({q}, {v})",
         "{a} = relaxed({a})", "s = s * 0.5 + np.sum({a}).real")  # fmt: skip
HEADS = ("for {k} in range(n):", "for {k} in range(n):", "for {k} in range({i}, n + 1):", "if {c}:",
         "for {k} in range(len(x) - 1, 0, -1):", "for {k}, each in enumerate({a}):",
         "{k} = 0\nwhile {k} < 4 and {c}:\n    {k} += 1", "if {c}:")  # fmt: skip
CONDITIONS = ("b", "n > 1", "s > 0.3", "np.sum({a}) < 0.4", "{i} % 2 == 0", "len(x) > 3")

HELPERS = """\
def mixed(p, q):
    p = p * 0.8
    q[:1] *= 0.5
    return p + q


def relaxed(p):
    p[1:] += p[:-1] * 0.5
    return p


def size_of(a):
    return np.sum(np.sin(np.real(a) + 0.4)) + np.sum(np.cos(np.imag(a) * 0.7))


"""
START = ("v = np.sin(x) * 1.5", "w = x + m[:, :1].sum()", "a = m.T * 0.5", "s = np.sum(x) * 0.3")


def arguments(k, n, seed, *, b=True, order="C"):
    draws = np.random.default_rng(seed)
    m = np.asarray(draws.uniform(-1.2, 1.2, (k, k)), order=order)
    return draws.uniform(-1.3, 1.3, k), m, n, b


RUNS = [arguments(4, 2, 1), arguments(4, 3, 2, b=False), arguments(5, 0, 3),
        arguments(3, 1, 4, b=False, order="F"), arguments(2, 4, 7)]  # fmt: skip


class Grower:
    """Grows one program."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = [f"    {line}" for line in START]
        self.loops = 0

    def pick(self, options):
        return self.random.choice(options)

    def filled(self, template, names):
        """A template with names of arrays, indices and values in the place of its fields."""
        arrays = [k for k, y in names.items() if isinstance(y, np.ndarray) and y.dtype.kind in "fc"]
        counters = [k for k, y in names.items() if isinstance(y, int) and k[0] in "kn"]
        a = self.pick(arrays)
        alike = [k for k in arrays if np.shape(names[k]) == np.shape(names[a])]

        def fill(text, depth):
            while "{" in text:
                field = text[text.index("{") : text.index("}") + 1]
                options = {
                    "{a}": (a,), "{q}": alike if self.random.random() < 0.7 else arrays,
                    "{v}": VIEWS if depth else (a,), "{e}": (*ARRAYS[:6], *NUMBERS) if depth
                    else ("s",), "{at}": SLICES, "{i}": (*counters, "0", "1"), "{c}": CONDITIONS,
                    "{op}": ("=", "+=", "*=", "-="), "{k}": (f"k{self.loops}",),
                }[field]  # fmt: skip
                text = text.replace(field, fill(self.pick(options), depth - 1), 1)
            return text

        if "{k}" in template:
            template = template.replace("{k}", f"k{self.loops}")
            self.loops += 1
        return fill(template, 2)

    def statement(self, names):
        kind = self.random.random()
        if kind < 0.2:
            head = self.filled(self.pick(HEADS), names)
            return [*head.split("\n"), *(f"    {line}" for line in self.statement(names))]
        if kind < 0.25:
            return [f"if {self.filled('{c}', names)}:", f"    {self.pick(('break', 'continue'))}"]
        if kind < 0.5:
            made = self.pick(("v", "w", "a", f"v{len(self.lines)}"))
            return [f"{made} = {self.filled(self.pick((*ARRAYS, *VIEWS)), names)}"]
        if kind < 0.55:
            return [f"s = {self.filled(self.pick(NUMBERS), names)}"]
        return self.filled(self.pick(STORES if kind < 0.85 else NAMES), names).split("\n")

    def source(self, last, lines=None):
        return "\n".join(
            [f"{HELPERS}def f(x, m, n, b):", *(lines or self.lines), f"    {last}", ""]
        )

    def names_at(self, at, indent):
        """What the names hold at a place, when the program is run first; nothing if it fails."""
        seen = []
        probed = [*self.lines[:at], f"{indent}PROBE(dict(locals()))", *self.lines[at:]]
        text = self.source("PROBE(dict(locals()))", probed)
        try:
            namespace = {"np": np, "PROBE": seen.append}
            exec(compile(text, "<probed>", "exec"), namespace)
            for args in RUNS:
                before = len(seen)
                with np.errstate(all="raise", under="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("error")
                    namespace["f"](*copy.deepcopy(args))
                if not all(map(_is_tame, seen[before:])):
                    return None
        except Exception:  # noqa: BLE001  (whatever a program raises, it is not kept)
            return None
        return seen[0]

    def grow(self):
        at = self.random.randint(len(START), len(self.lines))
        above = self.lines[at - 1]
        indent = above[: len(above) - len(above.lstrip())]
        names = self.names_at(at, indent)
        if names is None:
            return
        made = [indent + line for line in self.statement(names)]
        outer, self.lines = self.lines, [*self.lines[:at], *made, *self.lines[at:]]
        if self.names_at(len(self.lines), "    ") is None:
            self.lines = outer


def _is_tame(names):
    arrays = [np.asarray(y) for y in names.values() if isinstance(y, (np.ndarray, np.inexact))]
    return all(
        y.size <= 100 and y.ndim < 5 and (y.dtype.kind not in "fc" or np.all(np.abs(y) < LARGEST))
        for y in arrays
    )


def grown(seed):
    """A function of ``(x, m, n, b)`` with a real value, and its source."""
    grower = Grower(seed)
    size = len(START) + grower.random.randint(3, 12)
    for _ in range(TRIES * size):
        if len(grower.lines) < size:
            grower.grow()
    text = grower.source(
        "return size_of(v) + size_of(w) + size_of(a) + size_of(x) + size_of(m) + s"
    )
    filename = f"<grown {seed}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace = {"np": np}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["f"], text
