"""Programs that loop over arrays, ranges, containers and iterators."""

import collections
import functools
import itertools
import math

import numpy as np

from tests.frontend.agreement import Programs

PROGRAMS = program = Programs()
V = np.array([0.5, -1.25, 2.0, 3.5])
W = np.array([2.0, 0.1, -4.0, 1.0, 7.0, 0.25])
M = np.arange(12.0).reshape(3, 4) / 7


@program((V,), (W,), (-V,))
def over_an_array(a):
    s = 0.0
    for x in a:
        s = s * 0.5 + x
    return s


@program((M,), (M[:2] - 1,), (np.ones((5, 7)),))
def over_the_rows_of_a_matrix(a):
    s = a[0] * 0
    for row in a:
        s = s + row * row[0]
    return s


@program((V, W), (W, V), (W, W))
def over_zip(a, b):
    s = 0.0
    for x, y in zip(a, b):
        s += x * y
    return s


@program((V,), (W,))
def over_enumerate(a):
    s = 0.0
    for k, x in enumerate(a):
        s += k * x
    return s, k


@program((V,), (W,))
def over_enumerate_from_five(a):
    s = 0.0
    for k, x in enumerate(a, 5):
        s -= x**k
    return s


@program((V, W), (W, W))
def over_enumerate_of_zip(a, b):
    s = 0
    for k, (x, y) in enumerate(zip(a, b)):
        s += k * x - y
    return s


@program((V,), (W,))
def over_reversed(a):
    s = 1.0
    for x in reversed(a):
        s = math.sin(s) + x
    return s


@program((2.0, 7), (2.0, 8), (2.0, 0), (1.0, -4))
def over_a_reversed_range(x, n):
    s = 0.0
    for k in reversed(range(n)):
        s = s * x + k
    return s


@program((2.0, 10), (2.0, 3), (2.0, 0))
def backwards(x, n):
    s = 0.0
    for k in range(n, 0, -2):
        s = s * x + k
    return s


@program((2.0, 1, 9, 2), (2.0, 9, 1, -3), (2.0, 4, 4, 1), (2.0, 0, 5, -1), (2.0, 0, 5, 0))
def range_with_a_step_that_is_given(x, a, b, step):
    s = 0.0
    for k in range(a, b, step):
        s = s * x + k
    return s


@program((2.0,), (-1.0,))
def over_a_list_of_numbers(x):
    s = 0.0
    for w in [0.5, 1.5, 2.5]:
        s += w * x
    return s


@program((2.0,), (-1.0,))
def over_a_tuple_of_pairs(x):
    s = 0.0
    for a, b in ((1, 2.0), (3, 4.0)):
        s = s * a + b * x
    return s


@program.widening((V, 3), (W, 5), (V, 0))
def generator_in_sum(a, n):
    return sum(a[k] * k for k in range(n - 1))


@program((V,), (W,))
def sum_of_a_generator_with_a_condition(a):
    return sum(x * x for x in a if x > 0)


@program((M,), (np.ones((2, 3)),))
def over_columns(a):
    s = 0.0
    for column in a.T:
        s += column[0] - column[-1]
    return s


@program((V,), (W,), (-V,))
def over_neighbours(a):
    s = 0.0
    for x, y in itertools.pairwise(a):
        s = s * 0.5 + x * y
    for x, y in itertools.pairwise([a[0], a[1], 3.0]):
        s += x * y
    return s


@program((V,), (V * 2,))
def over_what_itertools_answers(a):
    s = 0.0
    for x in itertools.chain([a[0]], a[1:3], itertools.repeat(a[3], 2)):
        s = s * 0.5 + x
    for i, j in itertools.product(range(2), repeat=2):
        s += a[i] * a[j]
    for x, y in itertools.product([a[0], a[1]], (2.0, 3.0)):
        s += x**2 * y
    for i, j in itertools.combinations(range(4), 2):
        s += a[i] * a[j] * j
    for x, y in itertools.permutations([a[0], 1.0, a[2]], 2):
        s = s * 0.9 + x * y
    for x, y in itertools.zip_longest([a[0], a[1]], [a[2]], fillvalue=2.0):
        s += x * y
    s += sum(itertools.islice(a, 1, 3)) + sum(itertools.starmap(pow, [(a[0], 2), (a[1], 3)]))
    return s, list(itertools.accumulate([a[0], a[1], a[2]], lambda x, y: x * y, initial=2.0))


@program((V,), (-V,))
def over_a_list_that_is_changed_meanwhile(a):
    held, found = [a[0], a[1], a[2]], []
    for k, x in enumerate(held):
        if k < 2:
            held.append(x * 2)
        found.append(x)
    for k, x in enumerate(held):
        if k < 2:
            held[k + 1] = x * 3
        found.append(x)
    for k, x in enumerate(held):
        if k == 0:
            del held[1]
        found.append(x)
    for x, k in zip(held, itertools.count()):
        if len(held) < 8:
            held.append(x * k)
        found.append(x)
    for x, y in zip(held, a):
        held.append(x + y)
        found.append(x * y)
    pairs = enumerate(held)
    next(pairs)
    held[1] = a[2] * 7
    found.append(next(pairs)[1])
    return found


@program((V,), (W,))
def backwards_over_a_list_that_is_changed(a):
    held, found = [a[0], a[1], a[2]], []
    for x in reversed(held):
        held[0] = x * 2
        found.append(x)
    rest = reversed(held)
    held.append(a[0])
    held[1] = a[2] * 3
    found.extend(rest)
    return found


@program((V,), (W,))
def over_the_views_of_a_dict_whose_values_change(a):
    held, s = {"a": a[0], "b": a[1]}, 0.0
    for k, x in held.items():
        held["b"] = x * 3
        s += x * len(k)
    for x, k in zip(held.values(), held):
        held["b"] = x * 5
        s += x * len(k)
    try:
        for x in held.values():
            held["c"] = x
    except RuntimeError as error:
        s += len(str(error))
    return s


@program((V,), (-V,))
def over_a_deque_whose_items_change(a):
    held, s = collections.deque(a), 0.0
    for k, x in enumerate(held):
        held[2] = x * 2
        s += x * k
    return s


@program((V, 2), (W, 2))
def a_deque_of_some_length(a, n):
    latest = collections.deque([a[0], a[1], a[2]], maxlen=n)
    latest.append(a[3])
    return list(latest), sum(collections.deque(latest, n))


@program((M,), (M - 1,))
def over_elements_that_the_loop_writes(a):
    turned, every_other = (a * 1.0).T, (a[0] * 1.0)[::2]
    s = 0.0
    for x in turned.flat:
        turned[3, 2] = x * 2
        turned[1] += 0.5
        s = s * 0.5 + x
    for k, x in enumerate(every_other.flat):
        every_other[1] = x * 3
        s = s + x * k
    for (i, j), x in np.ndenumerate(turned):
        turned[-1, j] += x
        s = s * 0.5 + x * i
    return s, list(turned.flat)


@program((V,), (W,))
def reduced_while_it_is_changed(a):
    held = [a[0], a[1], a[2]]

    def added(s, x):
        if len(held) < 6:
            held.append(x * 2)
        return s * 0.5 + x

    return functools.reduce(added, held, 0.0)
