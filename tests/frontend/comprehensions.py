"""Comprehensions, maps and generators of four numbers, whose lists are used in many ways."""

import collections
import functools
import itertools
import math

import numpy as np

PROGRAMS = []
TABLE = np.arange(12.0).reshape(4, 3)

Pair = collections.namedtuple("Pair", "a b")


def program(f):
    """Enter a program."""
    PROGRAMS.append(f)
    return f


def g(t):
    return np.sin(t) * t


@program
def item_is_set(x):
    k = [g(t) for t in x]
    k[1] = x[0] * 2
    return sum(k)


@program
def appended_to(x):
    k = [g(t) for t in x]
    k.append(x[0])
    return sum(k) * len(k)


@program
def sliced(x):
    k = [g(t) for t in x]
    return k[0] * k[-1] + k[1:3][0] + sum(k[::-1])


@program
def popped(x):
    k = [g(t) for t in x]
    return k.pop() * k[0]


@program
def pairs_as_lists(x):
    k = [[t, g(t)] for t in x]
    return np.sum(np.array(k) ** 2)


@program
def triples(x):
    k = [(t, g(t), i) for i, t in enumerate(x)]
    return sum(a * b * c for a, b, c in k)


@program
def named_tuples(x):
    k = [Pair(t, g(t)) for t in x]
    return sum(p.a * p.b for p in k)


@program
def nested(x):
    k = [[g(a) * b for b in x] for a in x]
    return np.sum(np.array(k) ** 2)


@program
def nested_items(x):
    k = [[g(a) * b for b in x] for a in x]
    return k[1][2] * k[0][1]


@program
def nested_item_is_set(x):
    k = [[g(a) * b for b in x] for a in x]
    k[1][2] = 0.0
    return np.sum(np.array(k))


@program
def array_item_is_written(x):
    k = [x * t for t in x]
    k[0][1] = 3.0
    return np.sum(np.array(k) ** 2)


@program
def views_of_what_is_written(x):
    y = x.copy()
    k = [y[i : i + 2] for i in range(3)]
    y[1] = 7.0 * x[0]
    return sum(np.sum(a * a) for a in k)


@program
def rows_stacked(x):
    k = [TABLE[i] * x[i] for i in range(4)]
    return np.sum(np.vstack(k) ** 2)


@program
def rows_concatenated(x):
    k = [TABLE[i] * x[i] for i in range(4)]
    return np.sum(np.concatenate(k) ** 2)


@program
def unpacked(x):
    a, b, c, d = [g(t) for t in x]
    return a * b + c * d


@program
def largest(x):
    return max([g(t) for t in x])


@program
def sorted_by_python(x):
    return sorted([g(t) for t in x])[1]


@program
def added_to_a_list(x):
    k = [g(t) for t in x]
    l = k
    l = l + [x[0]]
    return sum(l)


@program
def interpolated(x):
    k = [g(t) for t in x]
    return np.interp(0.45, [0.1, 0.2, 0.5, 0.6], k)


@program
def in_a_dict(x):
    k = {"a": [g(t) for t in x]}
    return sum(k["a"])


@program
def by_a_condition(x):
    k = [t if t > 0 else -t * 2 for t in x]
    return sum(k)


@program
def of_constants(x):
    k = [i * 2.5 for i in range(4)]
    return np.sum(np.array(k) * x)


@program
def powers_by_the_counter(x):
    k = [x[i] ** i for i in range(4)]
    return sum(k)


@program
def of_several_lengths(x):
    k = [x[: i + 1] * 2 for i in range(4)]
    return sum(np.sum(a) for a in k)


@program
def arrays_without_axes(x):
    k = [np.array(t) for t in x]
    k[0][...] = 2.0
    return sum(k) * x[1]


@program
def lambda_inside(x):
    k = [(lambda s: s * t)(x[0]) for t in x]
    return sum(k)


@program
def of_functions(x):
    fs = [(lambda s, t=t: s * t) for t in x]
    return sum(f(x[0]) for f in fs)


@program
def assigned_inside(x):
    y = 0.0
    k = [(y := y + t) for t in x]
    return sum(k) * y


@program
def sorted_by_argsort(x):
    k = [g(t) for t in x]
    return np.sum(np.array(k)[np.argsort(k)] * x)


@program
def read_by_index(x):
    k = [g(t) for t in x]
    n = len(k)
    return sum(k[i] * k[n - 1 - i] for i in range(n))


@program
def sorted_in_place(x):
    k = [g(t) for t in x]
    k.sort()
    return k[0]


@program
def reversed_in_place(x):
    k = [g(t) for t in x]
    k.reverse()
    return k[0] * k[1] ** 2


@program
def item_is_deleted(x):
    k = [g(t) for t in x]
    del k[0]
    return sum(k)


@program
def first_and_rest(x):
    k = [g(t) for t in x]
    a, *b = k
    return a * sum(b)


@program
def summed_by_math(x):
    k = [g(t) for t in x]
    return math.fsum(k)


@program
def tuples_with_lists(x):
    k = [(t, [t, t * t]) for t in x]
    return sum(a * b[0] * b[1] for a, b in k)


@program
def of_integers(x):
    k = [int(i) for i in np.argsort(x)]
    return x[k[0]] * x[k[-1]] ** 2


@program
def downwards(x):
    k = [x[i] - x[i - 1] for i in range(3, 0, -1)]
    return sum(a * a * (j + 1) for j, a in enumerate(k))


@program
def of_two(x):
    k = [a * b for a, b in zip(x, x[::-1])]
    return sum(k[i] * i for i in range(4))


@program
def zipped_with_its_rest(x):
    k = [g(t) for t in x]
    return sum(a * b for a, b in itertools.pairwise(k))


@program
def of_two_types(x):
    k = [1.0 if t > 0 else 0 for t in x]
    return sum(a * b for a, b in zip(k, x))


@program
def emptied(x):
    k = [g(t) for t in x]
    s = 0.0
    while k:
        s += k.pop() * len(k)
    return s


@program
def one_array_many_times(x):
    w = np.zeros(4)
    k = [w for i in range(4)]
    k[0][0] = x[0]
    return np.sum(k[3] * x)


@program
def given_to_a_function(x):
    k = [g(t) for t in x]

    def h(k):
        return k[0] * k[1]

    return h(k) + h([g(t) * 2 for t in x])


@program
def given_to_numpy(x):
    return (
        np.mean([g(t) for t in x]) + np.max([g(t) for t in x]) + np.linalg.norm([g(t) for t in x])
    )


@program
def as_a_tuple(x):
    k = tuple([g(t) for t in x])
    return k[0] * k[1]


@program
def copied_and_set(x):
    k = list([g(t) for t in x])
    k[0] = 1.0
    return sum(k)


@program
def products_inside(x):
    k = [np.array([t, 1.0]) @ np.array([1.0, t]) for t in x]
    return sum(k)


@program
def matrices(x):
    k = [np.array([[t, 1.0], [0.0, t]]) for t in x]
    m = np.eye(2)
    for a in k:
        m = m @ a
    return m[0, 1]


@program
def zeros_that_are_set(x):
    k = [0.0 for t in x]
    k[0] = x[0] * x[1]
    return sum(k)


@program
def at_an_argmax(x):
    k = [g(t) for t in x]
    return k[np.argmax(x)]


@program
def compared_with_empty(x):
    k = [g(t) for t in x]
    return -1.0 * x[0] if k == [] else k[0]


@program
def on_both_ways(x):
    if x[0] > 0:
        k = [g(t) for t in x]
    else:
        k = [t for t in x]
    return k[0] * k[2]


@program
def inside_a_loop(x):
    s = 0.0
    for i in range(3):
        k = [g(t) * i for t in x]
        s = s + k[0] * k[i]
    return s


@program
def in_recursion(x):
    def rec(n, y):
        return y if n == 0 else rec(n - 1, np.array([g(t) for t in y]))

    return np.sum(rec(3, x))


@program
def complex_items(x):
    k = [complex(t, 1.0) for t in x]
    return abs(sum(k))


@program
def stored_one_by_one(x):
    k = [g(t) for t in x]
    out = np.zeros(4)
    for i in range(4):
        out[i] = k[i]
    return np.sum(out**2)


@program
def of_texts(x):
    k = [str(t) for t in x]
    return x[0] * len(k)


@program
def sum_of_map(x):
    return sum(map(g, x))


@program
def list_of_map(x):
    return np.sum(np.array(list(map(g, x))) ** 2)


@program
def fromiter_of_generator(x):
    return np.sum(np.fromiter((g(t) for t in x), float) ** 2)


@program
def fromiter_counted(x):
    return np.sum(np.fromiter(map(g, x), float, count=3) ** 2)


@program
def extremes_of_generators(x):
    return max(g(t) for t in x) * min(map(g, x))


@program
def generator_after_next(x):
    it = (g(t) for t in x)
    a = next(it)
    return a * sum(it)


@program
def map_of_two(x):
    return sum(list(map(lambda a, b: g(a) * b, x, x[::-1])))


@program
def loop_over_map(x):
    s = 0.0
    for v in map(g, x):
        s = s * 0.5 + v
    return s


@program
def left_early(x):
    s = 0.0
    for v in (g(t) * t for t in x):
        if v > 0.3:
            break
        s = s + v
    return s + x[0]


@program
def enumerated_generator(x):
    s = 0.0
    for i, v in enumerate(g(t) * t for t in x):
        s = s + v * i
    return s


@program
def zip_of_lazy_ones(x):
    return sum(a * b for a, b in zip(map(g, x), (t * t for t in x)))


@program
def tolist(x):
    return sum(v * 2 for v in x.tolist())


@program
def tolist_and_set(x):
    k = x.tolist()
    k[0] = 2.0
    return sum(k) * k[1]


@program
def tolist_of_a_matrix(x):
    return sum(r[0] * r[1] for r in np.outer(x, x).tolist())


@program
def starred_map(x):
    return math.hypot(*map(g, x[:2]))


@program
def any_of(x):
    return x[0] if any(t > 0.6 for t in x) else x[1]


@program
def all_of(x):
    return x[0] if all(t > -0.5 for t in x) else x[1]


@program
def zipped_into_a_dict(x):
    return dict(zip("abcd", map(g, x)))["c"]


@program
def returned_generator(x):
    def gen(v):
        return (g(t) for t in v)

    return sum(w * w for w in gen(x))


@program
def late_binding(x):
    c = 2.0
    it = (t * c for t in x)
    c = 3.0
    return sum(list(it))


@program
def reduced(x):
    return functools.reduce(lambda a, b: a * 0.5 + b, map(g, x))


@program
def used_up(x):
    it = map(g, x)
    a = list(it)
    b = list(it)
    return sum(a) + len(b)


@program
def used_up_by_a_sum(x):
    it = (g(t) for t in x)
    return sum(it) + sum(it)


@program
def filtered_map(x):
    return sum(v for v in map(g, x) if v > 0)


@program
def raises_inside_a_try(x):
    try:
        k = [1.0 / t if t != 0.2 else 1 / 0 for t in x]
    except ZeroDivisionError:
        return x[0] * 3
    return sum(k)


@program
def determinant(x):
    return np.linalg.det(
        np.array([[g(a) * b + (i == j) for j, b in enumerate(x)] for i, a in enumerate(x)])
    )


@program
def chosen(x):
    return sum([v * v for v in x if v > 0])


@program
def chosen_and_counted(x):
    k = [g(v) for v in x if v > 0]
    return np.mean(k) + len(k)


@program
def chosen_pairs(x):
    k = [(i, g(v)) for i, v in enumerate(x) if v > 0]
    return sum(i * v for i, v in k)


@program
def largest_of_chosen(x):
    return max([g(v) for v in x if v > 0])


@program
def ends_of_chosen(x):
    k = [v for v in x if v > 0]
    return k[0] * k[-1]


@program
def chosen_and_unpacked(x):
    a, b, *rest = [v for v in x if v > 0]
    return a * b + sum(rest)


@program
def chosen_and_sorted(x):
    k = [v for v in x if v > 0]
    k.sort()
    return k[0]


@program
def two_clauses(x):
    return sum([a * b for a in x for b in x if a > b])


@program
def two_clauses_and_a_test(x):
    return sum([a * b for a in x if a > 0 for b in x])


@program
def two_tests(x):
    return np.sum(np.array([v for v in x if v > 0 if v < 0.6]) ** 2)


@program
def a_known_test(x):
    return sum([x[i] for i in range(4) if i != 2])


@program
def chosen_places(x):
    k = [i for i in range(4) if x[i] > 0]
    return sum(x[i] * i for i in k)


@program
def none_chosen(x):
    k = [v for v in x if v > 9]
    return x[0] if not k else k[0]


@program
def chosen_of_a_list(x):
    return sum([v for v in [x[0], x[1] * 2, x[2]] if v > 0])


@program
def chosen_of_a_generator(x):
    return np.sum([w for w in (g(v) for v in x) if w > 0.05])


@program
def two_lists(x):
    k = [v for v in x if v > 0]
    l = [v for v in x if v <= 0]
    return sum(k) * sum(l)


@program
def chosen_arrays(x):
    k = [x * v for v in x if v > 0]
    return np.sum(np.array(k) ** 2)


@program
def chosen_lists(x):
    k = [[v, v * v] for v in x if v > 0]
    return sum(p[0] * p[1] for p in k)


@program
def chosen_for_a_dict(x):
    k = {i: v for i, v in enumerate(x) if v > 0}
    return sum(k.values())


@program
def chosen_by_index(x):
    k = [v for v in x if not (v < 0)]
    n = len(k)
    return sum(k[i] * k[n - 1 - i] for i in range(n))


@program
def quicksort(x):
    def q(l):
        if len(l) <= 1:
            return l
        p = l[0]
        return q([v for v in l[1:] if v < p]) + [p] + q([v for v in l[1:] if v >= p])

    s = q(list(x))
    return sum(v * (i + 1) for i, v in enumerate(s))


@program
def chosen_views(x):
    y = x.copy()
    k = [r for r in y.reshape(4, 1) if r[0] > 0]
    y[0] = 9.0
    return sum(np.sum(r) for r in k)


@program
def chosen_tuples(x):
    pts = [(x[i], x[i + 1]) for i in range(3)]
    k = [p for p in pts if p[0] > 0]
    return sum(p[0] * p[1] for p in k)


@program
def product_of_chosen(x):
    return math.prod([v for v in x if v > 0])


@program
def functions_that_see_the_last_name(x):
    return sum(f(x[0]) for f in [lambda v: v * t * k for k, t in enumerate(x)])


@program
def functions_in_a_generator(x):
    return sum(f(x[0]) * k for k, f in enumerate(lambda v: v * t for t in x))


@program
def functions_by_a_loop(x):
    s = 0.0
    for f in [lambda v: v * t for t in x]:
        s = s + f(x[1])
    return s


@program
def pairs_of_one_iterator(x):
    squares, products = map(g, x), (t * x[0] for t in x)
    return sum([a * b for a, b in zip(squares, squares, strict=True)]) + sum(
        a / (2.0 + b) for a, b in zip(products, products, strict=True)
    )
