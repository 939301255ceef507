"""Random programs that read and change lists, and lists of lists, at places that are computed."""

import random

FLAT = (
    "a[{i}] = {x}", "a[{i}] = {x}", "a[{i}] += {x}", "a[{i}], a[{j}] = a[{j}], a[{i}]", "b = a[:]",
    "a, b = b, a", "b = list(a)", "b = a.copy()", "b = copy.copy(a)", "b = [0.5] * n",
    "b[{i}] = a[{j}] * {x}", "a = b", "a = [p * 0.9 + {x} for p in a]", "b = a if {c} else b",
    "b = sorted(a)", "a.reverse()", "b = a[::-1]", "a = a[1:] + [{x}]", "b = [{x}] + a[:-1]",
    "if {c}:\n    b = a[:]\n    b[{i}] = {x}", "if {c}:\n    a = b", "t = a\nt[{i}] = {x}",
    "a[{i}] = max(a[{j}], {x})", "b = [p for p in a]", "a = [0.0] * len(b)",
)  # fmt: skip
ROWS = (
    "A[{i}][{j}] = {x}", "A[{i}][{j}] = {x}", "A[{i}][{j}] += A[{j}][{i}] * 0.5", "r = A[{i}]",
    "r[{j}] = {x}", "A[{i}][{j}] = a[{j}] + A[{j}][{i}]", "A[{i}] = [p * 0.9 for p in A[{j}]]",
    "for q in A:\n    q[{i}] += 0.1 * {x}", "a = A[{i}][:]", "r = A[{i}]\nr[{i}] *= 0.5",
    "B = [q[:] for q in A]\nB[{i}][{j}] = {x}\nA = B", "B = copy.deepcopy(A)\nB[{i}][{i}] = {x}",
    "B = A[:]\nB[{i}][{j}] = {x}", "A[{i}], A[{j}] = A[{j}], A[{i}]", "A[{i}] = A[{j}]",
    "if {c}:\n    A[{i}][{j}] = {x}", "A.reverse()", "r = [{x}] * n\nA[{i}] = r\nr[{j}] = {x}",
)  # fmt: skip
RAGGED = (
    "A[{i}].append({x})", "A.append([{x}, a[{i}]])", "A[{i}] += [{x}]",
    "if len(A[{i}]) > 2:\n    s += A[{i}].pop()", "r = []\nfor p in a:\n    r.append(p * {x})\nA.append(r)",
    "if len(A) > n:\n    r = A.pop()\n    s += sum(r)", "for p in A[{i}]:\n    s += 0.1 * p",
    "A.insert({i}, [{x}])", "if len(A) > n + 2:\n    del A[{i}]",
)  # fmt: skip
ARRAYS = (
    "a[{i}] = a[{j}] * 0.5", "a[{i}] = x[:2] * {x}", "a.append(a[{i}] * 0.5 + {x})", "a.append(x[1:3])",
    "t = a.pop({i})\ns += 0.1 * np.sum(t)\na.append(t)", "a.insert({i}, x[:2] * k)",
    "t = a[{i}]\na[{i}] = t * 0.5\ns += 0.1 * t[1]", "a[{i}], a[{j}] = a[{j}], a[{i}]", "a.reverse()",
    "if {c}:\n    a[{i}] = x[2:4] * {x}", "t = a[{i}]\nt[0] = {x}", "t = x[:2] * {x}\na[{j}] = t\nt[1] += 1",
    "t = x[3:5] * k\nt[1] += 1\na[{i}] = t", "b = a[:]", "b = list(a)", "b = a[1:]", "a = [t * 0.9 for t in a]",
    "if len(a) > n + 2:\n    del a[{i}]", "b[{i} % len(b)] = x[:2]", "for t in a:\n    s += 0.01 * t[0]",
)  # fmt: skip
READS_OF_ARRAYS = (
    "s += 0.1 * a[{i}][1]", "s += 0.01 * np.sum(np.array(a))", "s += 0.1 * np.sum(a[-1]) * len(a)",
    "s += 0.1 * b[{i} % len(b)] @ x[:2]", "s += 0.02 * sum(np.sum(t) for t in a)",
)  # fmt: skip
NONE = (
    "a[{i}] = None", "a[{i}] = {x}", "a[{i}] = {x}", "a[{i}] = a[{j}]", "if a[{i}] is None:\n    a[{i}] = {x}",
    "if a[{i}] is not None:\n    s += 0.1 * a[{i}]", "a.append(None)", "t = a.pop()\na.append({x})",
    "b = a[:]", "a[{i}], a[{j}] = a[{j}], a[{i}]", "a.insert({i}, {x})", "if a[{i}] is None or {c}:\n    s *= 0.9",
    "s += 0.1 if a[{j}] is None else a[{j}] * 0.3",
)  # fmt: skip
READS_OF_NONE = (
    "for p in a:\n    if p is not None:\n        s += 0.1 * p", "s += 0.1 * sum(p is None for p in a)",
    "s += 0.1 * sum(p for p in a if p is not None)",
)  # fmt: skip
READS = ("s += 0.1 * a[{i}]", "s += 0.1 * b[{j}] * {x}", "s += 0.01 * sum(a)", "s -= 0.1 * max(b)")
READS_OF_ROWS = (
    "s += 0.1 * A[{i}][{j}]", "for q in A:\n    s += 0.01 * q[{i}]", "s += 0.01 * sum(A[{i}])",
    "for k0, q in enumerate(A):\n    s += 0.01 * k0 * sum(q)", "s += 0.02 * sum(map(sum, A))",
    "s += 0.1 * len(A) * A[-1][0]",
)  # fmt: skip


def _indented(lines):
    return ["    " + line for line in lines]


class Writer:
    """Writes one program; ``rows`` is None of lists of numbers, or says what is on them."""

    def __init__(self, seed, rows):
        self.random = random.Random(seed)
        self.changes = FLAT
        self.reads = READS
        if rows is not None:
            self.changes = ROWS + FLAT[:3]
            self.reads = READS_OF_ROWS + READS[:1]
        if rows == "ragged":
            self.changes = RAGGED + ROWS[:4]
            self.reads = (*READS_OF_ROWS[2:5], "s += 0.1 * A[{i}][0]")
        if rows == "arrays":
            self.changes, self.reads = ARRAYS, READS_OF_ARRAYS
        if rows == "none":
            self.changes, self.reads = NONE, READS_OF_NONE
        self.rows = rows

    def _filled(self, template):
        for field, options in (
            ("{i}", ("k", "n - 1 - k", "(k * 3 + 1) % n", "2", "m")), ("{j}", ("(k + 1) % n", "m", "0", "k")),
            ("{x}", ("x[k % 5]", "s * 0.1", "x[2] * k", "np.sin(x[1] + k)")),
            ("{c}", ("x[k % 5] > 0.4", "k % 2 == 0", "s < 1.5")),
        ):  # fmt: skip
            while field in template:
                template = template.replace(field, self.random.choice(options), 1)
        return template.split("\n")

    def _statement(self):
        options = self.changes if self.random.random() < 0.7 else self.reads
        return self._filled(self.random.choice(options))

    def source(self):
        """The text of the program."""
        pick = self.random.choice
        first = [pick(("a = [0.0] * n", "a = [x[j % 5] for j in range(n)]", "a = list(np.cos(x[0] + np.arange(n)))")),
                 pick(("b = a[:]", "b = [1.0] * n", "b = [float(j) for j in range(n)]"))]  # fmt: skip
        if self.rows == "arrays":
            first = [pick(("a = [x[:2] * j for j in range(n)]", "a = [x[:2].copy()] * n", "a = [np.zeros(2) for _ in range(n)]")),
                     "b = [x[1:3]] * n"]  # fmt: skip
        elif self.rows == "none":
            first = [
                pick(("a = [None] * n", "a = [None if j % 3 else x[j % 5] for j in range(n)]"))
            ]
        elif self.rows is not None:
            first.append(pick((
                "A = [[0.0] * n for _ in range(n)]", "A = [[x[j % 5] * i for j in range(n)] for i in range(n)]",
                "A = [a[:] for _ in range(n)]", "A = [[float(i - j) for j in range(n)] for i in range(n)]",
            )))  # fmt: skip
            first.append("r = [0.0] * n")
        loops = []
        for _ in range(self.random.randint(1, 2)):
            body = ["m = (k * 7 + 2) % n"]
            for _ in range(self.random.randint(1, 4)):
                body += self._statement()
            if self.random.random() < 0.4:
                body += ["for m in range(1, n):", *_indented(self._statement() + self._statement())]
            loops += ["for k in range(n):", *_indented(body)]
        m = ["m = k = 1", *self._filled(pick(self.reads)), *self._filled(pick(self.reads))]
        lines = ["s = x[0] * 0.1", "m = k = 0", *first, *loops, *m, "return s"]
        return "\n".join(["import copy", "", "def f(x, n):", *_indented(lines)])
