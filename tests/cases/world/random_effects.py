"""Random programs whose statements touch the world around them."""

import collections

PROLOGUE = """\
import collections
import contextlib
import io
import logging
import math
import sys
import warnings
from pathlib import Path

import numpy as np

FOLDER = Path(PLACE)
BINARY, TEXTS = FOLDER / "f.npy", str(FOLDER / "g.txt")
LOG = logging.getLogger("tests.world.random")
NUMBERS, ITEMS, SEEN, TABLE = [0.25], [], set(), {"a": 0.75}
RECENT, COUNTS, TEXT = collections.deque(maxlen=4), collections.Counter(), io.StringIO()
GROUPS = collections.defaultdict(list)
WORK, GRID = np.linspace(-0.5, 0.5, 5), np.cos(np.arange(15.0)).reshape(3, 5)
RNG = np.random.default_rng(3)
np.random.seed(5)
CALLS, TOTAL = 0, 0.3


class Trouble(Exception):
    pass


class Box:
    scale = 0.7

    def __init__(self):
        self.calls, self.level, self.best, self.kept = 0, 0.4, None, []
        self.work = np.linspace(0.1, 0.9, 5)

    def update(self, v, k):
        self.calls += 1
        self.work[1:] = v[:-1] * self.scale
        self.level = 0.5 * self.level + v[k]
        self.kept.append(v[k])
        return self.work[k] + self.level

    def __enter__(self):
        self.calls += 10
        return self

    def __exit__(self, *_):
        self.kept.append("left")


BOX = Box()


def counter():
    ticks, last = 0, 0.1

    def tick(a):
        nonlocal ticks, last
        ticks += 1
        last = math.tanh(a) + 0.3 * last
        return last

    return tick, lambda: (ticks, last)


tick, ticked = counter()


@contextlib.contextmanager
def marked(name, a):
    ITEMS.append(name)
    try:
        yield a * 0.5
    finally:
        ITEMS.append((name, a))


"""
LOOK = """

def look():
    f_last = getattr(f, "last", None)
    held = (NUMBERS, ITEMS, SEEN, TABLE, RECENT, COUNTS, GROUPS, WORK, GRID, CALLS, TOTAL, BOX,
            f_last, *ticked())
    return held, (RNG.bit_generator.state, np.random.get_state()), TEXT.getvalue()
"""
# what a program does to objects, by what it needs: {s} a number, {v} a vector, {k} an index
OBJECTS = [
    "NUMBERS.append({s})", "NUMBERS.append({s})", "ITEMS.append({v})", "ITEMS.append(({k}, {s}))",
    "NUMBERS.extend([{s}, {t}])", "NUMBERS.insert(0, {s})", "NUMBERS[0] = {s}",
    "NUMBERS += [{s}]", "RECENT.append({s})", "RECENT.appendleft({k})", "TABLE['a'] = {s}",
    "TABLE[{k}] = {v}", "TABLE.setdefault('b', []).append({s})", "TABLE.update(c={s}, d='text')",
    "TABLE['a'] += {s}", "SEEN.add({k})", "SEEN.discard({k})", "COUNTS['calls'] += 1",
    "COUNTS.update('ab')", "GROUPS[{k}].append({s})", "CALLS += 1", "TOTAL = {s}",
    "TOTAL = 0.5 * TOTAL + {s}", "BOX.calls += 1", "BOX.level = {s}", "BOX.level += {s}",
    "BOX.best = {s} if BOX.best is None else BOX.best", "BOX.kept.append({s})", "f.last = {s}",
    "setattr(BOX, 'best', ({k}, {s}))", "ITEMS.append({{'x': {s}, 'k': {k}}})",
    "WORK[{k}] = {s}", "WORK[{k}] += {s}", "WORK[1:4] = {v}[:3]", "WORK[...] = {v}",
    "WORK *= 0.5", "WORK += 0.3 * {v}", "np.sin({v}, out=WORK)", "GRID[1] = {v}",
    "GRID[:, {k}] = {s}", "GRID[2, {k}] += {s}", "BOX.work[{k}] = {s}", "BOX.work = {v} * 0.5",
    "WORK[::2], WORK[0] = {v}[:3], {s}", "WORK[WORK > 0.21] = {s}", "BOX.work.fill({s})",
]  # fmt: skip
OUTPUT = [
    "print('s', {s}, {k})", "print({v}, f'{{{s}:.3f}}', '%.2e' % {t})",
    "print('e', {s}, file=sys.stderr)", "sys.stdout.write(f'{{{s}}} {{{k}}};')",
    "print({k}, {s}, end=' ', file=TEXT)", "TEXT.write(f'{{{s}:.4f}},')",
    "LOG.info('%s of %d', {s}, {k})", "LOG.debug(f'{{{k}}}: {{{s}}}')",
    "warnings.warn(f'w {{{s}:.3f}}', stacklevel=1)",
]  # fmt: skip
FILES = [
    ["np.save(FOLDER / 'a.npy', {v})"],
    ["np.savetxt(str(FOLDER / 'b.txt'), {v})"],
    ["np.savez(FOLDER / 'c.npz', v={v})"],
    ["with open(FOLDER / 'log.txt', 'a') as file:", "    file.write(f'{{{s}}}\\n')",
     "    print({k}, {v}, file=file)"],
    ["with (FOLDER / f'{{{k}}}.txt').open('w') as file:", "    file.write(str({s}))"],
    ["(FOLDER / 'd.txt').write_text(f'{{{s}:.5f}}')"],
    ["({v} * 1.0).tofile(FOLDER / 'e.bin')"],
]  # fmt: skip
# those that `jit` takes into its program
TRACEABLE = [
    "NUMBERS.append({s})",
    "ITEMS.append({v})",
    "ITEMS.append(({k}, {s}))",
    "RECENT.append({s})",
    "WORK[{k}] = {s}",
    "WORK[1:4] = {v}[:3]",
    "GRID[1] = {v}",
    "GRID[:, {k}] = {s}",
    "BOX.work[{k}] = {s}",
    "WORK[...] = np.sin({v})",
    "BOX.work[:2] = 0.25",
    "np.save(BINARY, {v})",
    "np.savetxt(TEXTS, {v})",
    "{n} = helper({s}, {k})",
    "{n} = sum([helper(a, {k}) for a in {v}[:2]])",
    "{n} = sum(steps({v}))",
    "{n} = helper({s}, {k})",
]
DRAWS = [
    "{n} = {s} * RNG.normal()", "{n} = {s} + np.random.random()",
    "{n} = np.sum({v} * RNG.random(5))",
    "{n} = np.dot({v}, np.random.normal(size=5)) * 0.3", "{n} = {v}[RNG.integers(5)]",
    "{n} = np.sum({v}[RNG.permutation(5)][:2])", "{n} = {s} * np.random.uniform(0.1, 0.9)",
    "{n} = {v}[int(np.random.randint(0, 5))]", "{n} = RNG.choice([0.2, 0.4]) * {s}",
]  # fmt: skip
READS = [
    "{n} = NUMBERS[-1] * {s}", "{n} = math.tanh(sum(NUMBERS)) * {s}", "{n} = {s} / len(NUMBERS)",
    "{n} = WORK[{k}] * {s}", "{n} = np.tanh(WORK.sum()) + {s}", "{n} = BOX.level * {s}",
    "{n} = TOTAL + {s}", "{n} = TABLE['a'] * {s}", "{n} = 0.1 * CALLS * {s}", "{n} = tick({s})",
    "{n} = BOX.update({v}, {k})", "{n} = GRID[1, {k}] * {s}", "{n} = BOX.work[{k}] + {s}",
    "{n} = 0.1 * len(RECENT) + {s}", "{n} = helper({s}, {k})", "{n} = helper({s}, {k})",
    "{n} = sum(steps({v}))", "{n} = sum([helper(a, {k}) for a in {v}[:2]])",
    "{n} = sum(tick(a) for a in {v} if a > 0.317)", "{n} = sum([a for a in steps({v})][:2])",
    "{n} = max([tick(0.1 * {s}), 2.0])", "{n} = sum(map(tick, {v}))",
    "{n} = (lambda q: NUMBERS.append(q) or q)({s})",
    "{n} = sum({{k: tick(x[k]) for k in (0, 2)}}.values())",
    "{n} = [helper({s}, {k}), {t}][1]", "{n} = next(steps({v}))",
]  # fmt: skip


class Author:
    """Writes one program.

    Parameters
    ----------
    draws : random.Random
        What it chooses by.
    """

    def __init__(self, draws):
        self.draws = draws
        self.lines, self.depth = [], 1
        self.scalars, self.vectors, self.indices = ["x[0]", "x[-1]"], ["x"], []
        self.counts = collections.Counter()
        self.calling = False  # a helper calls nothing that would call it again
        # most programs do a few kinds of things only: one refused by `jit` would hide the others
        kinds = [self.objects, self.output, self.file, self.draw, self.read]
        self.kinds = draws.sample(kinds, draws.choice((1, 2, 2, 3, 5)))
        self.traced = draws.random() < 0.5
        if self.traced:
            self.kinds = [self.output, self.traceable]

    def pick(self, options):
        return self.draws.choice(list(options))

    def new(self, kind):
        self.counts[kind] += 1
        return f"{kind}{self.counts[kind]}"

    def say(self, *lines):
        self.lines += ["    " * self.depth + line for line in lines]

    def scalar(self, deep=1):
        forms = [*self.scalars, f"{self.pick(self.vectors)}[{self.index()}]"]
        if deep:
            a, b = self.scalar(deep - 1), self.scalar(deep - 1)
            forms += [f"({a} + {b})", f"({a} * {b})", f"math.sin({a})", f"np.tanh({a} - {b})",
                      f"({a} if {b} > 0.313 else 0.5 * {b})"]  # fmt: skip
        return self.pick(forms)

    def vector(self, deep=1):
        v = self.pick(self.vectors)
        forms = [v, f"({v} * {self.scalar(0)})", f"np.sin({v})", f"{v}[::-1]"]
        return self.pick(forms if deep else [v])

    def index(self):
        return self.pick([*range(-5, 5), *self.indices * 4])

    def filled(self, template, **names):
        return template.format(s=self.scalar(), t=self.scalar(), v=self.vector(),
                               k=self.index(), **names)  # fmt: skip

    def condition(self):
        forms = [
            f"{self.scalar()} > {self.pick((0.313, -0.127, 1.017))}",
            f"{self.vector(0)}.sum() < 2.531",
            *[f"{k} % 2" for k in self.indices],
        ]
        return self.pick(forms)

    # -- statements

    def objects(self):
        self.say(self.filled(self.pick(OBJECTS)))

    def output(self):
        self.say(self.filled(self.pick(OUTPUT)))

    def file(self):
        words = [self.filled(line) for line in self.pick(FILES)]
        self.say(*words)

    def named(self, templates):
        name = self.new("s")
        self.say(self.filled(self.pick(templates), n=name))
        self.scalars.append(name)

    def draw(self):
        self.named(DRAWS)

    def read(self):
        self.named(READS)

    def traceable(self):
        if self.calling and self.pick((True, False)):
            self.named([t for t in TRACEABLE if "{n}" in t])
        else:
            self.say(self.filled(self.pick([t for t in TRACEABLE if "{n}" not in t])))

    def assign(self):
        if self.pick((True, False)):
            name, value = self.new("v"), self.vector()
            self.say(f"{name} = {value} * {self.scalar(0)}")
            self.vectors.append(name)
        else:
            self.named(["{n} = {s} * {t}", "{n} = {s} + 0.5 * {t}", "{n} = np.sum({v})"])

    def simple(self):
        self.pick([*self.kinds * 2, self.assign])()

    def block(self, head, *, loop=False, count=2):
        """Names that are bound inside are not known behind it."""
        self.say(head)
        self.depth += 1
        held = self.scalars[:], self.vectors[:], self.indices[:]
        for _ in range(self.pick(range(1, count + 1))):
            self.statement(loop=loop)
        self.depth -= 1
        self.scalars, self.vectors, self.indices = held

    def statement(self, *, loop=False):
        kinds = [self.simple] * 6
        if self.depth < 4:
            kinds += [self.loop, self.loop, self.branch, self.branch]
            if not self.traced or self.draws.random() < 0.3:
                kinds += [self.attempt, self.manager]
        if loop:
            kinds += [self.jump]
        self.pick(kinds)()

    def loop(self):
        form, k = self.pick(range(4)), self.new("k")
        result = self.scalars[-1] if self.scalars[-1].startswith("s") else None
        if form == 3:
            self.say(f"{k} = 0")
            self.block(f"while {k} < 3:", loop=False)
            self.say(f"    {k} += 1")
            return
        a = self.new("a")
        heads = [
            f"for {k} in range({self.pick((2, 3, 4))}):",
            f"for {k}, {a} in enumerate({self.vector()}):",
            f"for {a} in steps({self.vector()}):",
        ]
        held = self.scalars[:], self.indices[:]
        self.scalars += [a] if form else []
        self.indices += [k] if form < 2 else []
        self.block(heads[form], loop=True)
        if result and self.pick((True, False)):
            self.say(f"    {result} = math.tanh({result} + 0.3 * {self.scalar()})")
        self.scalars, self.indices = held
        if self.draws.random() < 0.15:
            self.block("else:", count=1)

    def jump(self):
        self.say(f"if {self.condition()}:", f"    {self.pick(('break', 'continue'))}")

    def branch(self):
        self.block(f"if {self.condition()}:")
        if self.pick((True, False)):
            self.block("else:")

    def attempt(self):
        pairs = [("Trouble", "Trouble"), ("KeyError", "LookupError"), ("ValueError", "Trouble"),
                 ("Trouble", "Exception")]  # fmt: skip
        raised, caught = self.pick(pairs[:1] if self.traced else pairs)
        self.block("try:")
        test = self.condition() if self.draws.random() < 0.8 else "True"
        self.say(f"    if {test}:", f"        raise {raised}({self.pick(('', self.index()))})")
        form = self.pick(range(3))
        if form < 2:
            self.block(f"except {caught}:")
            if self.draws.random() < 0.1:
                self.say("    raise")
            if self.draws.random() < 0.2:
                self.block("else:", count=1)
        if form:
            self.block("finally:", count=1)

    def manager(self):
        name = self.new("s")
        heads = [
            "with contextlib.suppress(Trouble):",
            f"with marked('m', {self.scalar()}) as {name}:",
            f"with BOX, marked('b', {self.scalar()}) as {name}:",
        ]
        head, held = self.pick(heads[:2] if self.traced else heads), self.scalars[:]
        self.scalars += [name] if name in head else []
        self.block(head)
        if self.draws.random() < 0.3:
            self.say(f"    if {self.condition()}:", "        raise Trouble")
        self.scalars = held

    # -- functions

    def function(self, head, length, end):
        held = self.scalars, self.vectors, self.indices, self.kinds
        self.say_at_once(head)
        for _ in range(length):
            self.simple()
        self.say(*end)
        self.lines += ["", ""]
        self.scalars, self.vectors, self.indices, self.kinds = held

    def say_at_once(self, head):
        self.lines.append(head)
        self.say("global CALLS, TOTAL, NUMBERS, WORK")

    def plainly(self):
        """In a helper nothing is called that would call it again."""
        return [kind for kind in self.kinds if kind != self.read] or [self.traceable]

    def program(self, length):
        """The source of a module with ``f`` and ``look``, to be run with ``PLACE`` known."""
        kinds = self.kinds
        self.kinds = self.plainly()
        self.scalars, self.vectors, self.indices = ["a"], ["WORK"], ["k"]
        end = ["return math.tanh(a) * 0.5"]
        if self.draws.random() < 0.1:
            end.insert(0, "warnings.warn('of the caller', stacklevel=2)")
        self.function("def helper(a, k):", self.pick((1, 2)), end)
        self.scalars, self.vectors, self.indices = ["x[0]"], ["x"], []
        self.say_at_once("def steps(x):")
        self.say("for k in range(3):")
        self.depth = 2
        self.indices = ["k"]
        self.simple()
        self.say("yield x[k] * 0.5")
        self.pick((self.simple, lambda: None))()
        self.depth = 1
        self.lines += ["", ""]
        self.kinds = kinds
        self.scalars, self.vectors, self.indices = ["x[0]", "x[-1]"], ["x"], []
        self.calling = True
        self.say_at_once("def f(x):")
        self.say("s0 = x[1] * 0.5")
        self.scalars.append("s0")
        for _ in range(length):
            self.statement()
            if self.draws.random() < 0.12:
                leaves = self.pick((f"return {self.scalar()}", "raise Trouble"))
                self.say(f"if {self.condition()}:", f"    {leaves}")
        every = [*self.scalars, *[f"np.sum({v} * {v})" for v in self.vectors]]
        world = self.pick(("", " + np.tanh(WORK).sum()", " + NUMBERS[-1]", " + BOX.level"))
        self.say(f"return {' + '.join(every)}{world}")
        return PROLOGUE + "\n".join(self.lines) + "\n" + LOOK
