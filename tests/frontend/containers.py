"""Programs on tuples, lists, dicts and named tuples."""

from collections import namedtuple
from typing import NamedTuple

import numpy as np

from tests.frontend.agreement import Programs

PROGRAMS = program = Programs()
V = np.array([0.5, -1.25, 2.0, 3.5])
W = np.array([2.0, 0.1, -4.0, 1.0, 7.0, 0.25])

Point = namedtuple("Point", "x y")


class State(NamedTuple):
    t: float
    u: np.ndarray


class Measured(namedtuple("Measured", "y error")):  # noqa: SLOT002  (it has attributes)
    """A named tuple with an attribute, which makes itself of three values."""

    def __new__(cls, y, error, scale):
        return super().__new__(cls, y * scale, error)

    def __init__(self, y, error, scale):
        self.raw = y
        self.scale = scale

    def weighted(self):
        return self.y * self.raw / (self.error + self.scale)


class Doubled(namedtuple("Doubled", "x y")):
    """A named tuple that changes what it is made of."""

    __slots__ = ()

    def __new__(cls, x, y):
        return super().__new__(cls, x * 2, y)


class Held:
    def __init__(self, value):
        self.value = value


@program(((1.0, 2.0),), ((-1.0, 0.5),))
def tuple_argument(p):
    x, y = p
    return y, x, p


@program(([1.0, 2.0, 3.0],), ([-1.0, 0.5, 7.0],))
def list_argument(p):
    return p[0] * p[-1], sum(p), len(p), p[1:]


@program(({"a": 1.0, "b": V},), ({"a": 5.0, "b": W},))
def dict_argument(d):
    return d["a"] * d["b"], d.get("c", 7.0), sorted(d), list(d.keys())


@program(({"a": 1.0, "b": {"c": V}},), ({"a": 5.0, "b": {"c": W}},))
def dict_of_dicts(d):
    s = 0.0
    for key, value in d.items():
        if key == "a":
            s += value
    return s * d["b"]["c"]


@program((Point(1.0, 2.0),), (Point(-1.0, 5.0),))
def named_tuple(p):
    return Point(p.y, p.x)._replace(x=p.x * 3), p.x - p[1], p


@program((1.5, 2.0, 3), (-0.5, 0.25, 0))
def named_tuple_that_changes_what_it_is_made_of(x, y, n):
    d, kept = Doubled(x, y), []
    if x > 0.0:
        d = Doubled(y, x)
    for _ in range(n):
        d = d._replace(y=d.y * 2.0)
        kept.append(Doubled(d.x, d.y))
    return d, Doubled(d.x, d.y), sum((k.x * k.y for k in kept), 0.0), Doubled._make([x, y])


@program((V, 2.0), (W, 0.5))
def named_tuple_that_makes_itself(x, s):
    m = Measured(x, 0.1 * s, s)
    m.raw = m.raw + m[0]
    return m.weighted(), m.raw, m.y, len(m), sum(m[1:])


@program((State(0.0, V), 3), (State(1.0, W), 0), (State(1.0, W), 1))
def named_tuple_is_carried(s, n):
    for _ in range(n):
        s = State(s.t + 0.1, s.u * 0.9)
    return s


@program(((1.0, (V, [2.0])),), ((3.0, (W, [4.0])),))
def nested_structure(p):
    a, (b, [c]) = p
    return {"a": [a, b], "c": (c,)}


@program((V, [2.0, -1.5, 0.25]), (W, [1.0, 3.0, -2.0]))
def items_at_places_that_are_computed(x, rates):
    """Of a list of Python's numbers, one of NumPy's, and a tuple of ints."""
    s, counts, own = 0.0, (3, 1, 2), [x[0], x[1] * x[2], x[-1]]
    for i in range(len(x)):
        k = int(np.argmax(x[: i + 1])) % 3
        s += rates[k] * own[-1 - k] + counts[k]
    return s, rates[int(np.argmin(x)) % 3], own[int(np.argmin(x)) % 3], counts[int(x[0]) % 3]


@program((1.0, 2.0), (3.0, 4.0))
def starred_targets(x, y):
    a, *b = x, y, x + y
    *c, d = b
    return a, b, c, d


@program((1.0, 2.0), (3.0, 4.0))
def list_methods(x, y):
    s = [x]
    s.append(y)
    s.extend([x * y, 1])
    s.insert(0, 9.0)
    last = s.pop()
    s.reverse()
    s += [last]
    return s, len(s), s[::-1], s * 2, [0.0] + s


@program((1.0, 2.0), (3.0, 4.0))
def dict_methods(x, y):
    d = dict(a=x)
    d["b"] = y
    d.update(c=x + y)
    d.setdefault("e", 5.0)
    popped = d.pop("a")
    return d, popped, list(d), list(d.values()), "b" in d, {**d, "z": x}


@program((V,), (-V,))
def comprehensions(a):
    return (
        [x * 2 for x in (a[0], a[1])],
        {k: a[k] for k in range(2)},
        [[i * a[0] for i in range(j)] for j in range(3)],
    )


@program((V,), (-V,))
def comprehension_with_a_static_condition(a):
    return [a[k] for k in range(4) if k % 2 == 0]


@program((V,), (-V,))
def comprehension_over_an_array(a):
    return np.array([x * x for x in a[:3]])


@program((1.0,), (2.0,))
def zip_and_sorted_of_known_lists(x):
    pairs = sorted(zip([3, 1, 2], [x, x * 2, x * 3]), key=lambda p: p[0])
    return pairs


@program((1.0, 2.0, 3.0), (3.0, 1.0, 2.0))
def sorted_by_what_is_known_of_the_keys(x, y, z):
    named = {"b": x, "a": y}
    rows = [["c", 1, x], ["a", 2, [y]], ["c", 0, z]]
    rows.sort(reverse=True)
    lengths = sorted([(2, x), (), (1,)], reverse=True)
    by_key = sorted(named, key=lambda name: (name, named[name]))
    pairs = sorted([("b", x), ("a", z)])
    return sorted(named.items()), pairs, rows, lengths, by_key


@program((np.array([2.0, 0.0]),), (np.array([7.0, 5.0]),), (np.array([np.nan, 1.0]),))
def types_of_what_is_compared(a):
    named, same, number = Point(a[0], "a"), [a[0], "a"], a[1]
    other = named
    both = (a[0], "a") == (a[0], "a"), [a[0], 1] != [a[1], 1], (number,) == (number,)
    return (
        named == other,
        named == Point(a[1], "a"),
        both,
        (a[0], "b") == (a[0], "a"),
        same == same[:],
    )


@program((np.array([2.0, 0.0]),), (np.array([4.0, 3.0]),))
def sorted_of_both_types(a):
    least, _ = sorted([a[1], 5.0])
    return least, sorted([a[1], a[0]]), 1 / least, sorted([3, 2.5, a.ndim * 1.0])


@program((1.0, 2.0), (-3.0, 4.0), (0.0, 0.0))
def any_and_all(x, y):
    return any([x > 0, y > 0]), all(t > 0 for t in (x, y)), any([]), all([])


@program.widening((1.0, 2.0), (-3.0, 4.0))
def list_is_changed_on_one_side(x, y):
    s = [x, y]
    if x > 0:
        s[0] = y
    else:
        s[1] = 0
    return s


@program((1.0, 2.0), (-3.0, 4.0))
def list_of_lists_is_changed_on_one_side(x, y):
    s = [[x], [y]]
    inner = s[0]
    if x > 0:
        inner[0] = y
    return s


@program((1.0, 2.0), (-3.0, 4.0))
def list_grows_alike_on_both_sides(x, y):
    s = []
    for k in (1, 2):
        s.append(x * k)
    if x > 0:
        s[0] = y
    return s


@program((1.0, 2.0), (-3.0, 4.0))
def dict_gets_a_key_on_both_sides(x, y):
    d = {}
    if x > 0:
        d["k"] = x
    else:
        d["k"] = y
    return d


@program(([1.0, 2.0], 5.0), ([3.0, 4.0], -5.0))
def list_argument_is_changed(s, x):
    s[0] = x
    return s[1] * 2


@program(([1.0, 2.0], 5.0), ([3.0, 4.0], -5.0))
def list_argument_grows(s, x):
    s.append(x)
    return len(s)


@program(({"a": 1.0}, 5.0), ({"a": 2.0}, -5.0))
def dict_argument_is_changed(d, x):
    d["a"] = d["a"] * x
    d["b"] = x
    return d["a"]


@program(([1.0, 2.0], 3), ([3.0, 4.0], 0))
def list_argument_is_changed_in_a_loop(s, n):
    for k in range(n):
        s[0] += s[1] * k
    return s


@program(([1.0, 2.0], 3.0), ([3.0, 4.0], -1.0))
def list_argument_is_changed_on_one_side(s, x):
    if x > 0:
        s[0] = x


@program((([1.0], [2.0]), 3.0), (([3.0], [4.0]), -1.0))
def inner_lists_of_an_argument_are_changed(p, x):
    p[0][0] = x
    p[1].append(x)


@program(([V.copy(), W.copy()],), ([W.copy(), V.copy()],))
def arrays_in_a_list_argument_are_changed(s):
    s[0][0] = 9.0
    s[1] += 1
    s[0] = s[0] * 2


@program(([3.0, 1.0],), ([5.0, 7.0],))
def argument_is_returned_itself(s):
    s[0] = 1.0
    return s


@program((1.0, 3), (2.0, 0), (2.0, 1))
def carried_nested_state(x, n):
    state = {"p": (x, [x, 2.0]), "n": 0}
    for k in range(n):
        p, q = state["p"]
        state = {"p": (p + q[0], [q[1], p]), "n": state["n"] + k}
    return state


@program.widening((1.0, 2.0), (-1.0, 2.0))
def tuples_on_two_sides(x, y):
    p = (x, y) if x > 0 else (y, 0)
    return p[0] - p[1], p


@program((1.0, 2.0), (-3.0, 4.0))
def list_grows_and_shrinks_on_both_sides(x, y):
    s, t = [x], [x, y]
    if x > 0:
        s.append(y)
        t.pop()
    else:
        s.append(x)
        t.pop(0)
    return s, t


@program((1.0, 2.0), (-3.0, 4.0))
def same_value_on_both_sides(x, y):
    z = y
    if x > 0:
        z = x
        w = None
    else:
        z = x
        w = None
    return z, w


@program((1.0, 2.0), (-3.0, 4.0))
def list_is_changed_on_one_side_and_another_one_on_the_other(x, y):
    s, d = [x, y], {"a": x, "b": [y]}
    if x > 0:
        s[0] = y * 3.0
        d["a"] = y
        d["b"][0] = x * y
    else:
        s = [y, x * 2.0]
        d = {"a": x + 1.0, "b": [x]}
    return s, d["a"], d["b"]


@program((1.0, 3), (-3.0, 4), (2.0, 0))
def list_is_changed_or_another_one_in_a_loop(x, n):
    s = [x, x * 0.5]
    for k in range(n):
        if k % 2 == 0:
            s[0] = x * 2.0 + k
        else:
            s = [x, s[0]]
    return s


@program((1.0, 2.0), (-3.0, 4.0))
def object_is_changed_on_one_side_and_another_one_on_the_other(x, y):
    p = Held(x)
    if x > 0:
        p.value = y * 3.0
    else:
        p = Held(x * y)
    return p.value


@program((1.0,), (2.0,))
def set_of_known_things(x):
    kinds = {"a", "b"}
    kinds.add("c")
    return x * len(kinds), "a" in kinds


@program((2.0,), (3.0,))
def strings(x):
    name = "sin" + "h"
    f = getattr(np, name)
    label = f"{name}-{2:03d}"
    return f(x), label, name.upper(), "-".join(["a", "b"])


@program((V,), (-V,))
def tolist_of_numbers(a):
    p = a[:2].tolist()
    return p, type(p[0]) is float
