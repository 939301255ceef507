"""Programs with branches, conditions, checks and exceptions."""

import math

import numpy as np

from tests.frontend.agreement import Programs

PROGRAMS = program = Programs()
V = np.array([0.5, -1.25, 2.0, 3.5])


@program((3.0,), (-3.0,), (0.0,), (-0.0,), (math.nan,))
def absolute(x):
    if x >= 0:
        return x
    return -x


@program.widening((3.0,), (-3.0,), (15.0,), (0.5,))
def chain(x):
    if x > 10:
        y = 1.0
    elif x > 1:
        y = x
    elif x > 0:
        y = x * x
    else:
        y = 0
    return y


@program((3.0, True), (3.0, False))
def flag_argument(x, up):
    return x + 1 if up else x - 1


@program((3.0,), (-3.0,))
def conditional_expression(x):
    return (math.sqrt(x) if x > 0 else 0.0) + 1


@program((1.0, 2.0), (2.0, 1.0), (0.0, 0.0), (0.0, 3.0))
def value_of_and(x, y):
    return x and y


@program((1.0, 2.0), (2.0, 1.0), (0.0, 0.0), (0.0, 3.0))
def value_of_or(x, y):
    return x or y


@program((1.0,), (0.0,), (-0.0,))
def value_of_not(x):
    return not x


@program((1.0, 0.0), (5.0, 2.0), (5.0, 0.0))
def and_guards_a_division(x, y):
    if y != 0 and x / y > 2:
        return x / y
    return 0.0


@program.widening((1.0, 2.0, 3.0), (3.0, 2.0, 1.0), (1.0, 2.0, 2.0))
def chained_comparison(a, b, c):
    if a < b < c:
        return 1.0
    return a <= b <= c


@program((1.0,), (5.0,), (9.0,))
def bound_on_one_side_only(x):
    if x > 4:
        y = x * 2
    return y


@program((5.0,), (1.0,))
def bound_on_one_side_and_used_on_the_same(x):
    if x > 4:
        y = x * 2
    z = 0.0
    if x > 4:
        z = y
    return z


@program((1.0,), (5.0,), (-1.0,))
def nested_returns(x):
    if x > 0:
        if x > 4:
            return x
        x = x + 1
    else:
        return -1.0
    return x * 100


@program.widening((1.0,), (-1.0,))
def returns_of_two_types(x):
    if x > 0:
        return 1
    return x


@program((1.0,), (-1.0,))
def assertion(x):
    assert x > 0, "must be positive"
    return math.sqrt(x)


@program((1.0,), (-1.0,), (20.0,))
def raises_under_a_condition(x):
    if x < 0:
        raise ValueError(f"negative: {x}")
    if x > 10:
        raise KeyError("large")
    return math.sqrt(x)


@program((1.0,), (0.0,))
def python_division(x):
    return 1 / x


@program((np.float64(1.0),), (np.float64(0.0),))
def numpy_division(x):
    return 1 / x


@program((1.0,), (-1.0,), (0.0,))
def domain_of_log(x):
    return math.log(x)


@program((1.0,), (1000.0,))
def overflow_of_exp(x):
    return math.exp(x)


@program((4, 3), (4, 0), (-7, 2), (7, -2))
def integer_division(a, b):
    return a // b, a % b, a / b


@program((7.5, 2.0), (-7.5, 2.0), (7.5, -0.3))
def floor_and_modulo_of_floats(a, b):
    return a // b, a % b, divmod(a, b)


@program((2.0, 3), (2.0, -3), (0.0, 0))
def powers(x, n):
    return x**n, x**2, 2**x


@program((2, 3), (5, 0))
def integer_powers(a, n):
    return a**n


@program((3.0,), (-1.0,))
def branch_in_a_called_function(x):
    def clip(t):
        if t < 0:
            return 0.0
        return t

    return clip(x) + clip(-x)


@program((3.0, 1.0), (-1.0, 5.0))
def optional_argument_is_none(x, y, z=None):
    if z is None:
        z = x
    return x + y * z


@program((3.0,), (-1.0,))
def none_or_a_number(x):
    y = None
    if x > 0:
        y = x
    if y is not None:
        return y * 2
    return 0.0


@program((3.0,), (-1.0,))
def none_used_as_a_number(x):
    y = None
    if x > 0:
        y = x
    return y + 1


@program((V,), (-V,))
def branch_on_an_array(a):
    if np.all(a > -2):
        return a * 2
    return a


@program((V,), (-V,), (V * 0,))
def arrays_of_two_sides(a):
    if a.sum() > 0:
        b = a * 2
    else:
        b = np.zeros_like(a)
    b[0] = 7.0
    return b


@program((V, 1.0), (V, -1.0))
def one_side_is_an_alias(a, x):
    b = a.copy()
    c = b if x > 0 else np.ones_like(b)
    c[1] = 50.0
    return b, c


@program((V, 1.0), (V, -1.0))
def argument_is_written_on_one_side(a, x):
    if x > 0:
        a[0] = x
    else:
        a *= 2
    return a.sum()


@program((True, 1.0), (False, 1.0))
def bools_in_arithmetic(b, x):
    return b + x, b * 2, b + b


@program((True, False), (False, False), (True, True))
def bools_and_bits(a, b):
    return a & b, a | b, a ^ b, not a, a == b


@program((5, 3), (-5, 3), (0, 0))
def bits_of_integers(a, b):
    return a & b, a | b, a ^ b, ~a, a << b, a >> b


@program((3.7,), (-3.7,), (0.5,), (2.5,))
def roundings(x):
    return int(x), round(x), math.floor(x), math.ceil(x), math.trunc(x), round(x, 1)


@program((3.0,), (0.0,))
def conversions(x):
    return int(x), float(x), complex(x), bool(x), str("a")


@program((1 + 2j,), (0j,), (-1 - 1j,))
def complex_numbers(z):
    w = z * z.conjugate()
    return w, z.real, z.imag, abs(z), z == 0


@program((1.0, 2.0), (2.0, 1.0), (1.0, 1.0), (math.nan, 1.0), (1.0, math.nan))
def max_and_min(a, b):
    return max(a, b), min(a, b), max(a, b, 1.5), min([a, b])


@program.widening((3, 2.0), (1, 2.0), (3, 5.5))
def max_of_an_int_and_a_float(a, b):
    return max(a, b)


@program((V,), (-V,), (np.array([1.0, math.nan]),))
def max_of_an_array(a):
    return max(a[0], a[1])


@program((1.0,), (-1.0,), (0.0,))
def try_around_a_raise(x):
    try:
        y = x + 1
    except ValueError:
        y = 0.0
    else:
        y = y * 2
    finally:
        x = x - 1
    return x + y


@program((2.0,), (-2.0,))
def string_option_on_both_sides(x):
    if x > 0:
        kind = "up"
    else:
        kind = "up"
    return x if kind == "up" else -x


@program((2.0, "up"))
def string_argument(x, kind):
    return x if kind == "up" else -x


@program((2.0,), (0.5,), (-3.0,))
def match_of_values(x):
    match x > 1:
        case True:
            return x * 2
        case _:
            return -x


@program((2,), (0,), (1,), (7,))
def match_of_numbers(n):
    match n:
        case 0:
            y = 10.0
        case 1 | 2:
            y = 20.0
        case k if k > 5:
            y = k * 1.0
        case _:
            y = -1.0
    return y


@program((2.0, 1.0), (0.5, 3.0))
def match_of_structures(x, y):
    match (x, {"kind": "a", "v": y}):
        case (float() as p, {"kind": "a", "v": q}):
            return p - q
        case _:
            return 0.0


@program((2.0, 3.0), (-2.0, 3.0))
def both_sides_raise(x, y):
    if y > 0:
        if x > 0:
            raise ValueError("a")
        else:
            raise TypeError("b")
    return x


@program((2.0, 3.0), (-2.0, 3.0), (2.0, -3.0), (-2.0, -3.0))
def changes_then_raises(x, y):
    s = 0.0
    if x > 0:
        s = 1.0
        if y < 0:
            s = 2.0
            raise ValueError("late")
    return s + y


@program((V, 1), (V, 9), (V, -4), (V, -5))
def index_error(a, k):
    return a[k]


@program((V, 1.0), (V, -1.0))
def index_error_on_one_side(a, x):
    if x > 0:
        return a[1]
    return a[17]


@program((2.0,), (-2.0,))
def is_of_flags(x):
    up = x > 0
    return up is True, up is not False


@program((V,), (np.repeat(V, 2)[::2],))
def contiguous(x):
    y = np.outer(x, x).T * 2.0
    parts = x, y, y.T, y[:, ::-1], x[::2]
    return [np.sum(a) if a.flags.c_contiguous else 2.0 * np.prod(a) for a in parts]


@program((2.0, 1), (1.0, 1), (0.5, 2))
def numbers_compared_with_in(x, n):
    return x in (1.0, 2.0), n not in [1, 3]


SIGNS = ((0.7, 1.3), (-0.7, 1.3), (0.7, -1.3), (-0.7, -1.3))


@program(*SIGNS)
def a_python_bool_is_true(x, y):
    both = bool(x > 0) and bool(y > 0)
    either = bool(x > 0) | bool(y > 0)
    return x * (2.0 if both is True else 3.0) + (y if either is not False else 0.5 * y)


@program(*SIGNS)
def a_numpy_bool_is_one_of_two(x, y):
    rises = np.greater(x, 0.0)
    alike = (x > 0) is (y > 0)
    return x * (2.0 if rises is np.True_ else 3.0) * (5.0 if rises is True else 7.0) + y * alike


@program(*SIGNS)
def a_match_of_a_truth_value(x, y):
    match bool(x > 0):
        case True:
            return x * y
        case False:
            return x - y
