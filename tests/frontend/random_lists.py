"""Random programs that change a list in all ways, inside of loops and branches."""

import random

ITEMS = {  # an item of v and k, and a number of an item p
    "number": ("v * v + 0.1 * k", "p"),
    "python": ("float(v) * 0.5 - k", "p"),
    "whole": ("k * 3 % 5 - 1", "x[p]"),
    "pair": ("(k % 4, v * x[0])", "x[p[0]] * p[1]"),
    "nested": ("((v, k), v - 0.5)", "(p[0][0] + 0.1 * p[0][1]) * p[1]"),
}
CHANGES = (
    "l.append({item})", "l.append({item})", "l.append({item})", "l += [{item}, {other}]",
    "l.insert(0, {item})", "l.insert({i}, {item})", "l.insert(-1, {item})",
    "l.reverse()", "l.extend(({item}, {other}))",
    "if l:\n    p = l.pop()\n    s += {n}", "if l:\n    p = l.pop()\n    s += {n}",
    "if len(l) > 2:\n    p = l.pop(0)\n    s += {n} * 0.5",
    "if len(l) > 1:\n    p = l.pop({i} % len(l))\n    s -= {n}",
    "if len(l) > 3:\n    del l[{i} % 3]", "if len(l) > 6:\n    l.clear()",
    "if l:\n    l[-1] = {item}", "if len(l) > 1:\n    l[{i} % len(l)] = {other}",
    "if len(l) > 1:\n    l[0], l[-1] = l[-1], l[0]",
    "while l and len(l) > 2:\n    p = l.pop()\n    if {n} < 0.3:\n        break\n    s += {n}",
    "while len(l) > 5 or (l and s > 9):\n    l.pop()\n    s *= 0.5",
    "if len(l) > 8:\n    s *= 0.7\n    {leave}",
)  # fmt: skip
READS = (
    "s += 0.1 * len(l)", "for p in l:\n    s += 0.2 * {n}", "if l:\n    p = l[-1]\n    s += {n}",
    "for j, p in enumerate(l):\n    s += (j + 1) * 0.1 * {n}", "if not l:\n    s *= 1.1",
    "if l:\n    p = l[{i} % len(l)]\n    s -= {n} * v", "for p in reversed(l):\n    s = s * 0.9 + {n}",
    "for p in l[1:]:\n    s += 0.3 * {n}", "for p in list(l):\n    s += 0.05 * {n}",
)  # fmt: skip
OF_NUMBERS = ("l.sort()", "s += 0.1 * sum(l)", "if l:\n    s += 0.1 * max(l) - 0.2 * min(l)",
              "s += 0.1 * np.sum(np.array(l))")  # fmt: skip
CONDITIONS = ("v > 0.4", "k % 2 == 0", "s < 1.5", "len(l) < 4", "v < x[1] or k == 3")


def _indented(lines, by=1):
    return ["    " * by + line for line in lines]


class Writer:
    """Writes one program."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.item, self.number = ITEMS[self.random.choice([*ITEMS])]
        kind = next(k for k, form in ITEMS.items() if form[0] == self.item)
        self.of_numbers = kind in ("number", "python")

    def _filled(self, template):
        pick = self.random.choice
        for field, options in (
            ("{item}", (self.item,)), ("{n}", (f"({self.number})",)), ("{i}", ("k", "2", "j0")),
            ("{other}", (self.item.replace("v", "x[2]", 1),)), ("{leave}", ("break", "continue")),
        ):  # fmt: skip
            while field in template:
                template = template.replace(field, pick(options), 1)
        return template.split("\n")

    def _statement(self, depth):
        kind = self.random.random()
        if kind < 0.2 and depth < 2:
            lines = [f"if {self.random.choice(CONDITIONS)}:", *_indented(self._some(depth + 1))]
            if self.random.random() < 0.5:
                lines += ["else:", *_indented(self._some(depth + 1))]
            return lines
        if kind < 0.3 and depth < 1:
            return ["for j0 in range(2):", *_indented(self._some(depth + 1))]
        if kind < 0.4 and self.of_numbers:
            return self._filled(self.random.choice(OF_NUMBERS))
        return self._filled(self.random.choice(CHANGES if kind < 0.8 else READS))

    def _some(self, depth):
        count = self.random.randint(1, 3)
        return [line for _ in range(count) for line in self._statement(depth)]

    def source(self):
        begun = self.random.choice(("[]", "[]", f"[{self.item}]"))
        loops = []
        for _ in range(self.random.randint(1, 2)):
            head = self.random.choice(
                ("for k, v in enumerate(x):", "for k in range(n):\n    v = np.sin(x[k % 5] * k)")
            )
            loops += [*head.split("\n"), *_indented(self._some(0)), *_indented(self._some(0))]
        last = [line for _ in range(2) for line in self._filled(self.random.choice(READS))]
        body = ["s, j0, k, v = x[0] * 0.1, 1, 2, x[3]", f"l = {begun}", *loops, *last, "return s"]
        return "\n".join(["def f(x, n):", *_indented(body)])
