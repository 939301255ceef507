"""What cannot be traced is refused, with the user's line and column, a reason and a way out."""

import random
import time
import warnings
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.special

import fwdad
from fwdad.errors import UntraceableError
from fwdad.frontend.syntax.loops import TraceWarning
from fwdad.frontend.trace import trace
from fwdad.ir.ops import Loop
from tests.differences import central_differences

V = np.array([0.5, -1.25, 2.0])
COUNT = 0
HISTORY = []
OUTSIDE = np.zeros(3)
RNG = np.random.default_rng(0)


@dataclass
class Body:
    x: float


def iterator_used_twice(a):
    pairs = zip(a, a)
    total = 0.0
    for x, y in pairs:
        if x > 9:
            break
        total += x * y
    for x, y in pairs:  # here: second time
        total += x + y
    return total


def resized_in_place(a):
    b = a * 1.0
    b.resize((2, 2))  # here: in place
    return b


def try_around_what_may_raise(x):
    try:  # here: may raise
        y = 1 / x
    except ZeroDivisionError:
        y = 0.0
    return y


def puts_out_finally(x):
    try:  # here: would be missing
        if x > 5:
            raise KeyError
    finally:
        print("left")
    return x


def raises_finally(x):
    try:  # here: would be missing
        if x > 5:
            raise KeyError
    finally:
        if HISTORY is not None:
            raise ValueError


def returns_finally(x):
    try:  # here: would be missing
        if x > 5:
            raise KeyError
    finally:
        return x


def continues_finally(x):
    for _ in range(2):
        try:  # here: would be missing
            assert x > 5
        finally:
            continue
    return x


def stores_finally(x):
    try:  # here: would be missing
        if x > 5:
            raise KeyError
    finally:
        OUTSIDE[0] = x
    return x


def leaves_a_generator(x):
    def items():
        try:  # here: would be missing
            yield x
            yield 2 * x
        finally:
            OUTSIDE[0] = x

    for item in items():
        if item > 5:
            raise KeyError
    return x


class Raising:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        raise ValueError


def raises_at_an_exit(x):
    with Raising():  # here: raises others in place
        if x > 5:
            raise KeyError
    return x


class Printing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        print("left")


def puts_out_at_an_exit(x):
    with Printing():  # here: would be missing
        if x > 5:
            raise KeyError
    return x


def try_around_an_index(a, n):
    try:  # here: may raise
        return a[n]
    except IndexError:
        return 0.0


def set_of_values(x):
    return len({x, 2 * x})  # here: key of a dict or set


def dict_grows_on_one_side(x):
    d = {}
    if x > 1:
        d["a"] = x
    return d


def with_a_file(x):
    with open("nothing") as f:  # here: at trace time
        f.read()
    return x


def with_errors_that_raise(x):
    with np.errstate(all="raise"):  # here: `np.errstate` that raises at
        return x / 2


def global_assignment(x):
    global COUNT
    COUNT = x  # here: is a global name
    return x


def global_list_grows(x):
    HISTORY.append(x)
    return x + len(HISTORY)  # here: is read, too


def random_draw(x):
    return x + np.random.rand()  # here: random numbers


def random_generator(x):
    return x + RNG.normal()  # here: random numbers


def length_of_a_comprehension(a):
    return {k: x for k, x in enumerate(a) if x > 0}  # here: depends on values


def unknown_c_function(x):
    return scipy.special.ellipkinc(x, hash(x))  # here: hash


def eigenvalues(a):
    return np.linalg.eigvals(np.outer(a, a))  # here: dtype of its result depends on values


def class_statement(x):
    class Local:  # here: `class`
        pass

    return x


def sorted_by_values(x, y):
    rows = [np.array([x, y]), np.array([y, x])]
    rows = sorted(rows, key=lambda row: row[0])  # here: numpy.argsort
    return rows[0]


def filtered_by_values(x, y):
    return list(filter(lambda t: t > 0, [x, y]))


def one_of_two_objects(x):
    a, b = Body(x), Body(2.0)
    c = a if x > 0 else b
    c.x = 5.0  # here: which Body it is
    return a.x


def one_of_two_lists(x):
    a, b = [x], [2.0]
    c = a if x > 0 else b
    c.append(5.0)  # here: which list it is
    return a, b


def text_of_a_number(x):
    return float(str(x))


def different_kinds_on_two_sides(x):
    y = x if x > 0 else (x, x)
    return y * 2  # here: on one path


def different_ranks_in_a_loop(a, n):
    for _ in range(n):
        a = a[None]
    return a.sum()


def star_of_a_computed_length(a):
    b = a[a > 0]
    return max(*b)  # here: it is computed


def asynchronous(x):
    async def g():
        return x

    return x


def clock(x):
    return x + time.time()  # here: at trace time


def another_generator(x):
    return x + random.random()  # here: at trace time


def another_draw(x):
    return x + random.gauss(0.0, 1.0)  # here: at trace time


def text_in_a_comparison(x):
    return 1.0 if f"{x}" == "1.0" else 0.0  # here: the message of an error


def text_is_returned(x):
    return f"{x}", "%s" % x


def text_as_a_key(x):
    return {"…": 1.0}[str(x)]  # here: the message of an error


def identity_of_values(x, y):
    return (x + 1) is y  # here: use `==`


def generator_argument(g):
    return sum(g)


def set_argument(s):
    return len(s)


REFUSED = [
    (resized_in_place, (V,)),
    (iterator_used_twice, (V,)),
    (try_around_what_may_raise, (1.0,)),
    (try_around_an_index, (V, 1)),
    (puts_out_finally, (1.0,)),
    (raises_finally, (1.0,)),
    (returns_finally, (1.0,)),
    (continues_finally, (1.0,)),
    (stores_finally, (1.0,)),
    (leaves_a_generator, (1.0,)),
    (raises_at_an_exit, (1.0,)),
    (puts_out_at_an_exit, (1.0,)),
    (set_of_values, (1.0,)),
    (dict_grows_on_one_side, (3.0,)),
    (with_a_file, (1.0,)),
    (with_errors_that_raise, (1.0,)),
    (global_assignment, (1.0,)),
    (global_list_grows, (1.0,)),
    (random_draw, (1.0,)),
    (random_generator, (1.0,)),
    (length_of_a_comprehension, (V,)),
    (unknown_c_function, (1.0,)),
    (eigenvalues, (V,)),
    (class_statement, (1.0,)),
    (sorted_by_values, (1.0, 2.0)),
    (filtered_by_values, (1.0, 2.0)),
    (one_of_two_objects, (1.0,)),
    (one_of_two_lists, (1.0,)),
    (text_of_a_number, (1.0,)),
    (different_kinds_on_two_sides, (1.0,)),
    (different_ranks_in_a_loop, (V, 3)),
    (star_of_a_computed_length, (V,)),
    (asynchronous, (1.0,)),
    (clock, (1.0,)),
    (another_generator, (1.0,)),
    (another_draw, (1.0,)),
    (text_in_a_comparison, (1.0,)),
    (text_is_returned, (1.0,)),
    (text_as_a_key, (1.0,)),
    (identity_of_values, (1, 2)),
]


def expected_place(f):
    """The line that is marked with `# here: part of the message`, if one is."""
    code = f.__code__
    with open(code.co_filename, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for k in range(code.co_firstlineno - 1, len(lines)):
        if k >= code.co_firstlineno and lines[k].startswith("def "):
            return None, ""
        if "# here: " in lines[k]:
            return k + 1, lines[k].partition("# here: ")[2]
    return None, ""


@pytest.mark.parametrize(("f", "args"), REFUSED, ids=lambda x: getattr(x, "__name__", None))
def test_refused_with_its_line(f, args):
    before = (COUNT, list(HISTORY))
    with pytest.raises(UntraceableError) as caught:
        trace(f, *args)
    error = caught.value
    first = f.__code__.co_firstlineno
    assert error.filename == f.__code__.co_filename
    assert first <= error.lineno <= first + 12, str(error)
    assert error.offset is not None
    line, part = expected_place(f)
    if line is not None:
        assert (error.lineno, part in error.msg) == (line, True), str(error)
    assert (COUNT, HISTORY) == before


@pytest.mark.parametrize(
    ("f", "arg"),
    [
        (generator_argument, (k for k in "a")),
        (set_argument, {1.0}),
        (set_argument, OrderedDict(a=1.0)),
    ],
)
def test_refused_arguments(f, arg):
    with pytest.raises(UntraceableError, match="argument"):
        trace(f, arg)


def test_a_short_loop_that_grows_a_list_is_unrolled_with_a_warning():
    def f(a):
        found = []
        for k in range(3):
            found.append(a[k] * k)
        return found

    line = f.__code__.co_firstlineno + 2
    with pytest.warns(TraceWarning, match=rf"test_limits.py:{line}: .* unrolled 3 times"):
        tape = trace(f, V)
    assert tape(2 * V) == f(2 * V)


def test_a_long_one_is_one_body():
    def f(x):
        found = []
        for k in range(1000):
            found.append(x * k)
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tape = trace(f, 1.0)
    assert tape(2.5) == f(2.5)
    assert tape.count(Loop) <= 2


def place_in_a_written_array(x):
    marks = np.zeros(3)
    marks[1] = 1.0
    return [x[0], x[1] * 2, x[2] * 3][int(np.argmax(marks))] ** 2


def place_in_counts(x):
    counts = np.zeros(3, int)
    for k in range(2):
        counts[k] += 1
    return [x[0], x[1] * 2, x[2] * 3][counts.sum()] ** 2


def place_by_a_list(x):
    return (x[0], x[1] * 2, x[2] * 3)[np.count_nonzero([x[0] > 5, x[1] > 1])] ** 2


def key_by_a_tuple(x):
    return {True: x[0], False: x[1]}[bool(np.any((x[0] > 5, x[1] > 5)))]


def axis_by_a_list(x):
    return np.sum(np.ones((3, 2)), axis=int(np.all([x[0] > 5, True])))[0] * x[0]


def least_of_a_tuple(x):
    items = (x[0], x[1], x[2])
    return items[int(np.argmin(items))] ** 2


def key_in_counts(x):
    counts = np.zeros(3, int)
    for k in range(2):
        counts[k] += 1
    return dict(enumerate([x[0], x[1] * 2, x[2] * 3]))[int(counts.sum())] ** 2


@pytest.mark.parametrize(
    "f", [place_in_a_written_array, place_in_counts, place_by_a_list, least_of_a_tuple]
)
def test_places_are_computed_when_the_tape_runs(f):
    x = np.array([0.3, 1.2, -0.5])
    for derivative in (fwdad.grad, fwdad.jacfwd):
        g = fwdad.jit(derivative(f))
        for point in (x, x[::-1].copy(), x + 5):
            expected = central_differences(f, point)
            assert np.allclose(g(point), expected, rtol=1e-8, atol=1e-8)
        assert fwdad.cache_info(g).traces == 1


@pytest.mark.parametrize("f", [key_in_counts, key_by_a_tuple, axis_by_a_list])
def test_what_has_to_be_known_is_not_taken_from_arrays_and_lists_of_values(f):
    x = np.array([0.3, 1.2, -0.5])
    with pytest.raises(UntraceableError, match="is needed at trace time") as caught:
        trace(f, x)
    assert caught.value.filename == __file__
    assert np.allclose(fwdad.grad(f)(x), central_differences(f, x), rtol=1e-8, atol=1e-9)


def test_what_follows_from_numbers_among_the_arguments_is_known():
    def f(x, n, m):
        return [x, 2 * x, 3 * x, 4 * x][n * m - 2] * [x, x * x][(n + m) // 4]

    g = fwdad.jit(fwdad.grad(f), backend="numpy")
    for n, m in ((1, 2), (3, 1), (1, 5)):
        assert np.isclose(g(0.7, n, m), fwdad.derivative(f, 0.7, args=(n, m)), rtol=1e-14)


def test_branches_that_are_nested_too_deeply(tmp_path):
    """A long chain of ``elif`` is one branch inside of another: `grad` runs it without a tape."""
    lines = ["def f(x):", "    if x < 0.0:", "        return x"]
    for k in range(1, 101):
        lines += [f"    elif x < {k / 100}:", f"        return {k}.0 * x * x"]
    lines += ["    return 0.0 * x", ""]
    path = tmp_path / "chain.py"
    path.write_text("\n".join(lines))
    names = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    f = names["f"]
    assert np.isclose(fwdad.grad(f)(0.305), 2 * 31.0 * 0.305)
    assert np.isclose(fwdad.jvp(f, 0.305, 1.0)[1], 2 * 31.0 * 0.305)
    for call in (fwdad.jit(f), fwdad.jit(fwdad.grad(f))):
        with pytest.raises(UntraceableError, match="more than 90 branches") as caught:
            call(0.305)
        assert caught.value.filename == str(path)
