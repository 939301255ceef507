"""Programs at the corners: aliases in loops, None, names that come and go, odd indices."""

import math
import operator

import numpy as np

from tests.frontend.agreement import Programs

PROGRAMS = program = Programs()
V = np.array([0.5, -1.25, 2.0, 3.5])
W = np.array([2.0, 0.1, -4.0, 1.0, 7.0, 0.25])


@program((V, 3), (W, 0), (W, 1))
def alias_is_made_in_a_loop(a, n):
    b = np.zeros_like(a)
    for k in range(n):
        b = a
        a[k] += 1
    b[0] = 50.0
    return a, b


@program((V, 3), (W, 0), (W, 2))
def new_array_or_the_same(a, n):
    b = a
    for _ in range(n):
        a = a + 1
    a[0] = 9.0
    return b


@program((V, 1.0), (V, -1.0))
def update_or_new_on_two_sides(a, x):
    b = a
    if x > 0:
        a += 1
    else:
        a = a + 1
    a[1] = 7.0
    return a, b


@program((V, 3), (W, 0), (W, 1))
def view_moves_through_a_loop(a, n):
    y = a.copy()
    v = y[:2]
    for k in range(n):
        v *= 2
        v = y[k : k + 2]
    v += 100.0
    return y


@program((1.0,), (-1.0,))
def none_in_a_tuple(x):
    p = (x, None) if x > 0 else (None, x)
    if p[0] is None:
        return p[1] * 2
    return p[0] * 3


@program((1.0,), (0.0,), (-1.0,))
def none_is_false(x):
    y = x if x >= 0 else None
    return 1.0 if y else 2.0


@program((1.0,), (-1.0,), (3.0,))
def questions_about_what_may_be_none(x):
    y = x if x >= 0 else None
    asked = (
        isinstance(y, float),
        isinstance(y, (int, str)),
        isinstance(y, (type(None), str)),
        hasattr(y, "real"),
        callable(y),
        bool(y),
        operator.is_(y, None),
        operator.is_not(y, None),
    )
    if isinstance(y, str) or y is None:
        return asked, -1.0
    return asked, y * getattr(y, "real", 2.0)


@program((1.0,), (-1.0,), (3.0,))
def what_may_be_none_is_compared(x):
    y = x if x >= 0 else None
    z = x if x <= 2 else None
    same = y == x, y != 3.0, y == z, z != y, y == 1, None == y  # noqa: E711  (it is the test)
    return same, y in (1.0, None), None in [y, z], None not in (z, 2.0)


@program((1.0,), (-1.0,))
def what_may_be_none_is_a_number(x):
    y = x if x >= 0 else None
    return round(y), abs(y), float(y), int(y)


@program((V, 2.0))
def lengths_of_lists_of_values(a, x):
    n = np.size([x, a[0], a[1]])
    return np.zeros(n) + x, np.shape([a, 2 * a]), np.ndim((x, x)), np.size([a, a], 1)


@program((1.0,), (-1.0,))
def none_or_a_default(x):
    y = x if x >= 0 else None
    return y or 5.0


@program((1.0,), (-1.0,))
def equals_none(x):
    y = x if x >= 0 else None
    return y == None, y != None  # noqa: E711


@program.widening((1.0, 3), (-1.0, 3), (-1.0, 0), (1.0, 0))
def what_may_be_missing_widens(x, n):
    m = None
    if x < 0:
        m = 1
    for _ in range(n):
        m = x
    return m


@program((1.0,), (-1.0,))
def deleted_on_one_side(x):
    y = x
    if x > 0:
        del y
    return y


@program((1.0, 3), (1.0, 0))
def comprehension_variable_does_not_leak(x, n):
    k = 10.0
    s = [k * x for k in range(3)]
    for _ in range(n):
        s = [k + t for t in s]
    return s, k


@program((1.0,), (-1.0,))
def try_finally_around_a_return(x):
    s = 0.0
    for k in range(4):
        try:
            s = s + x
            if s > 2:
                break
        finally:
            s = s * 2
    return s, k


@program((2.7, V), (0.0, V), (-1.2, V), (9.0, V))
def index_by_a_converted_float(x, a):
    return a[int(x)]


@program((2.0, V), (-2.0, V))
def scalar_mask(x, a):
    b = a.copy()
    b[x > 0] = 1.0
    return b


@program((V,), (-V,))
def zip_of_a_list_and_an_array(a):
    s = 0.0
    for w, x in zip([1.0, 2.0, 3.0, 4.0], a):
        s += w * x
    return s


@program(([V, W], 2.0), ([W, V], 1.0))
def over_a_list_of_arrays(arrays, x):
    s = 0.0
    for k, a in enumerate(arrays):
        a *= x
        s += a[0] * k
    return s


@program(({"a": 1.0, "b": 2.0}, 3.0), ({"a": -1.0, "b": 5.0}, 2.0))
def over_the_items_of_a_dict(d, x):
    s = 0.0
    for key, value in d.items():
        d[key] = value * x
        s += value
    return s


@program((5, 1.0), (50, 1.0))
def large_integers(n, x):
    k = 1
    for _ in range(n):
        k = k * 7 + 3
    return k, k % 1000 * x


@program((1.0, 0.5), (1.0, 3.0), (1.0, 40.0))
def return_inside_while_inside_for(x, limit):
    for k in range(5):
        y = x
        while y < limit * k:
            y *= 3
            if y > 20:
                return k, y
        x += y
    return -1, x


@program((3, 1.0), (0, 1.0), (9, 1.0))
def else_of_nested_loops(n, x):
    for i in range(n):
        for j in range(i):
            if i * j == 6:
                break
        else:
            x += 1
            continue
        x *= 2
        break
    else:
        x = -x
    return x


@program((V, 2), (W, 0), (V, 3))
def chained_targets(a, n):
    b = c = np.zeros(len(a))
    for k in range(n):
        b[k] = c[k - 1] = a[k]
    b += 1
    return b, c


@program((1.0, 2), (1.0, 0))
def functions_are_carried(x, n):
    f = math.sin
    for _ in range(n):
        x = f(x)
    return x


@program((1.0,), (-3.0,))
def raise_in_a_called_function_after_a_store(x):
    a = np.ones(2)

    def check(t):
        if t < 0:
            a[0] = 5.0
            raise ValueError(t)
        return t

    return check(x) + a[0]


@program((V, 1.0), (V, -1.0))
def argument_is_stored_before_a_raise(a, x):
    a[0] = 8.0
    if x < 0:
        a[1] = 9.0
        raise ValueError("negative")
    a[2] = 10.0
    return a.sum()


@program((V, 2), (V, 7), (W, 5))
def bounds_are_checked_before_later_stores(a, n):
    a[0] = 1.0
    a[n] = 2.0
    a[1] = 3.0


@program((V, 0.0), (V, 2.0))
def assertion_in_a_loop(a, limit):
    s = 0.0
    for x in a:
        assert abs(x) > limit, x
        s += x
    return s


@program((1.0, 2.0), (2.0, 1.0))
def swap_under_a_condition(a, b):
    if a > b:
        a, b = b, a
    return a, b


@program((V, W), (W, V))
def arrays_swapped_under_a_condition(a, b):
    if a[0] > b[0]:
        a, b = b, a
    a[0] = 100.0
    return a, b


@program((1.0, 4), (1.0, 0), (2.0, 1))
def flag_of_a_first_iteration(x, n):
    first = True
    s = 0.0
    for _ in range(n):
        if first:
            s = x
            first = False
        else:
            s = s * x + 1
    return s, first


@program((1.0, 4), (3.0, 0), (2.0, 1))
def strings_change_on_the_way(x, n):
    mode = "start"
    for k in range(2):
        if mode == "start":
            x = x + n
            mode = "go"
        else:
            x = x * 2
    return x, mode


@program((V, 3), (W, 0))
def previous_values_are_kept(a, n):
    old, new = a[0], a[1]
    for k in range(n):
        old, older, new = new, old, new + old * k
        if new > 5:
            new = older
    return old, new


@program((np.float64(2.0), 3), (np.float64(-1.0), 0))
def augmented_numpy_number_does_not_alias(x, n):
    y = x
    for _ in range(n):
        y += 1
    return x, y


@program((np.array(2.0), 3), (np.array(-1.0), 0))
def augmented_zero_dimensional_array_aliases(x, n):
    y = x
    for _ in range(n):
        y += 1
    return x, y


@program((V, 1), (W, 3), (V, -1))
def negative_and_given_slices(a, k):
    return a[k:], a[:-1][k], a[-2:], a[::-1][:2], a[len(a) - 1]


@program((2.0, 5), (2.0, 1))
def recursion_on_values(x, n):
    def power(t, k):
        if k == 0:
            return 1.0
        return t * power(t, k - 1)

    return power(x, n)


@program((2.0, 3), (-2.0, 3))
def message_by_percent_sign(x, n):
    text = "after %d steps" % n
    for k in range(n):
        if x > 100:
            text += ", at %s" % (x,)
            raise OverflowError(text + " (%d of %d)" % (k, n))
        x = x * x - k
    return x


@program((V, 10), (W, 3), (W, 0), (-V, 5))
def return_and_break_and_else(a, n):
    for i in range(n):
        for j in range(i):
            if a[(i * j) % 4] > 3:
                return i, j, a[0]
            if i * j > 20:
                break
        else:
            a[0] += 1
    return -1, -1, a[0]


@program((7.0, V, W), (0.3, W, V), (-9.0, V, V))
def what_may_be_none_leaves_two_loops(x, a, b):
    z = None
    for e in a:
        for t in b:
            if t > x:
                return z
        z = e
    return z


@program((3, 1.0), (0, -1.0), (2, 1.0))
def slice_that_one_way_makes(n, x):
    a = np.arange(6.0)
    s = None
    for k in range(n):
        if x > 0:
            s = slice(k, k + 2)
    return a if s is None else a[s]


@program((2, 7), (0, 0), (5, 2), (-3, 4))
def empty_ranges_are_false(i, j):
    return 1 if range(i, j, 2) else 2, not range(i, j)


@program((2, 7), (0, 0), (5, 2), (-3, 4))
def ranges_are_asked(i, j):
    r = range(i, j, 2)
    known = isinstance(r, range), isinstance(r, (list, np.ndarray)), type(r) is range
    return len(r), 1 if r else 2, not r, r.start, r.stop, r.step, known


@program((V,))
def iterators_are_asked(a):
    g = (x for x in a)
    return isinstance(zip(a, a), zip), type(enumerate(a)) is enumerate, isinstance(g, list)


@program((2.5,), (-1.0,), (math.nan,), (math.inf,), (1e30,))
def arange_up_to(x):
    return np.arange(0.0, x, 1.0)


@program((np.arange(6.0).reshape(2, 3), 4), (np.arange(6.0).reshape(3, 2), -1))
def items_by_one_number(a, k):
    return a.item(k) * a.T.item(1) + a.item((1, 0)), a.sum().item()
