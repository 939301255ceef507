"""What is printed of a tape, and what its NumPy source says."""

import inspect
import math
import operator

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad
from fwdad.codegen.numpy_backend.source import compiled, numpy_source
from fwdad.ir.check import checked
from fwdad.ir.ops import Apply, Block, Branch, Check, Loop, Program, Value
from fwdad.ir.printer import show_program
from fwdad.ir.types import BOOL, FLOAT, INT
from fwdad.transforms.passes import optimise
from tests.ir.programs import A, X, Y, named
from tests.ir.running import traced


def shown(f, *args):
    tape = traced(f, *args)
    optimise(tape.program, checked)
    return str(tape).splitlines()


def test_ten_line_function_is_about_ten_readable_lines():
    lines = shown(named("recurrence").f, X, Y)
    assert lines == [
        "tape recurrence(a: float64[?], x: float64[?]):",
        "    y = np.zeros_like(x)",
        "    t = x.shape[0]",
        "    if t > 0:",
        "        y[0] = x[0]",
        "    for i in range(1, t):",
        "        t_2 = a[i]",
        "        if not t_2 < 0:",
        "            t_3 = y[i - 1]",
        "            y[i] = t_2 * t_3 + np.sin(t_3)",
        "    return y",
    ]


def test_loop_that_breaks_reads_as_it_was_written():
    assert shown(named("newton").f, 2.0) == [
        "tape newton(a: float):",
        "    x = a",
        "    while True:",
        "        new = 0.5 * (x + a / x)",
        "        t = abs(new - x) < 1e-12",
        "        if t:",
        "            break",
        "        x = new",
        "    return new",
    ]


def test_carried_values_keep_their_names():
    assert shown(named("alternating").f, 1.0, 3) == [
        "tape alternating(y: float, n: int):",
        "    for i in range(n):",
        "        if i % 2 == 0:",
        "            y = 3 * y",
        "        else:",
        "            y = -y",
        "    return y",
    ]
    assert shown(named("nested").f, 2.0, 2, 3) == [
        "tape nested(a: float, n: int, m: int):",
        "    for _ in range(n):",
        "        for _ in range(m):",
        "            a = a + a",
        "    return a",
    ]


def test_swaps_are_one_line():
    lines = shown(named("swapped_arrays").f, X, Y, 2)
    assert "        new, old = old, new" in lines


def test_value_that_is_still_needed_keeps_its_name():
    def f(x, n):
        start = x
        for _ in range(n):
            x = x * 0.5
        return x + start

    lines = shown(f, 3.0, 2)
    assert lines[-1].strip() != "return x + x"
    tape = traced(f, 3.0, 2)
    optimise(tape.program)
    assert compiled(numpy_source(tape.program))(3.0, 2) == (3.75,)


def test_chain_of_conditions_is_written_with_elif():
    def f(x):
        if x > 1:
            return x * 2.0
        if x > 0:
            return x * 3.0
        return x * 4.0

    assert shown(f, 0.5)[1:] == [
        "    if x > 1:",
        "        t = x * 2.0",
        "    elif x > 0:",
        "        t = x * 3.0",
        "    else:",
        "        t = x * 4.0",
        "    return t",
    ]


def test_checks_are_not_negated_twice():
    def f(x):
        if x > 2:
            raise ValueError("large")
        assert x > 0, "small"
        return x

    lines = shown(f, 1.0)
    assert lines[2:6] == [
        "        raise ValueError('large')",
        "    if not x > 0:",
        "        raise AssertionError('small')",
        "    return x",
    ]
    assert lines[1] == "    if x > 2:"


def test_arrays_are_updated_in_place():
    def f(x):
        x += 1.0
        x[1:] *= 2.0
        return np.sum(x)

    assert shown(f, X)[1:] == ["    x += 1.0", "    x[1:] *= 2.0", "    return np.sum(x)"]


def test_source_is_the_same_every_time():
    texts = set()
    for _ in range(3):
        tape = traced(named("left_by_two").f, X, 4)
        optimise(tape.program)
        texts.add(numpy_source(tape.program).text)
    assert len(texts) == 1


def test_exceptions_are_raised_in_the_order_of_the_program():
    def f(x, y):
        a = x[3]
        b = 1.0 / y
        assert y > 0.5, "small"
        return a + b

    tape = traced(f, np.ones(4), 1.0)
    optimise(tape.program, checked)
    run = compiled(numpy_source(tape.program))
    with pytest.raises(IndexError):
        run(np.ones(3), 0.0)
    with pytest.raises(ZeroDivisionError):
        run(np.ones(4), 0.0)
    with pytest.raises(AssertionError):
        run(np.ones(4), 0.25)


@pytest.mark.parametrize(
    "x",
    [
        math.nan, math.inf, -math.inf, -0.0, 1e300, -1.5, np.float32(0.1), np.float64(-math.inf),
        np.float32(math.nan), np.int8(-3), np.True_, True, 2**70, complex(0.0, -0.0),
        complex(math.nan, math.inf), np.complex64(1 - 2j), np.complex128(complex(0, math.inf)),
    ],
)  # fmt: skip
def test_constants_survive_bit_for_bit(x):
    c = Value(BOOL)
    program = Program("f", Block([c], [], [x, (x,)]))
    first, (second,) = compiled(numpy_source(program))(True)
    for found in (first, second):
        assert type(found) is type(x)
        assert_array_equal(np.asarray(found), np.asarray(x))
        if not isinstance(x, int):
            assert np.asarray(found).tobytes() == np.asarray(x).tobytes()


def test_negative_bases_and_negations_keep_their_parentheses():
    x, a, b, c, d = Value(FLOAT), Value(FLOAT), Value(FLOAT), Value(FLOAT), Value(BOOL)
    ops = [
        Apply(operator.neg, (x,), outputs=(a,)),
        Apply(operator.pow, (a, 2), outputs=(b,)),
        Apply(operator.pow, (-2.0, x), outputs=(c,)),
        Apply(operator.not_, (x,), outputs=(d,)),
    ]
    program = Program("f", Block([x], ops, [b, c, d]))
    assert compiled(numpy_source(program))(3.0) == (9.0, -8.0, False)


def test_long_chains_compile():
    x = Value(FLOAT)
    ops, last = [], x
    for _ in range(3000):
        made = Value(FLOAT)
        ops.append(Apply(operator.add, (1.0, last), outputs=(made,)))
        last = made
    program = Program("f", Block([x], ops, [last]))
    source = numpy_source(program)
    assert compiled(source)(0.5) == (3000.5,)
    assert max(map(len, source.text.splitlines())) < 130


def test_condition_that_is_a_number_and_empty_sides():
    c, x = Value(BOOL), Value(FLOAT)
    fails = Block([], [Check(False, ValueError, ("no",))], [])
    program = Program("f", Block([c, x], [Branch(c, Block(), fails), Branch(c, Block(), Block())]))
    assert show_program(program).splitlines()[1:] == [
        "    if not t:",
        "        raise ValueError('no')",
        "    return ",
    ]


def test_what_a_loop_counts_is_counted():
    n, i = Value(INT, "n"), Value(INT, "i")
    loop = Loop((0, n, 1), [], Block([i], [], []))
    program = Program("f", Block([n], [loop], [loop.exec_count]))
    assert compiled(numpy_source(program))(4) == (4,)
    assert compiled(numpy_source(program))(-4) == (0,)


def test_growing_slices_read_as_slices():
    assert shown(named("growing_slices").f, A, 2)[2:5] == [
        "    for j in range(n):",
        "        a_2 = a[j, :j]",
        "        s = s + np.sum(a_2 * a[j + 1, :j]) + np.sum(a_2)",
    ]


def test_a_name_that_ends_like_a_numbered_one_stays_apart():
    x = Value(FLOAT, "x")
    made = [Value(FLOAT, name) for name in ("z", "z", "z_2", "z_2_2", "z_2")]
    ops = [Apply(operator.add, (x, float(k)), outputs=(v,)) for k, v in enumerate(made)]
    source = numpy_source(Program("f", Block([x], ops, [*made, *made])))
    assert compiled(source)(1.0) == (1.0, 2.0, 3.0, 4.0, 5.0) * 2, source.text


def in_a_loop(x, n):
    s = np.zeros(3)
    for i in range(n):
        y = np.sin(x) * i
        if y[0] > 0:
            s += y
        else:
            s -= y
        s[0] = s[1] * 0.5
    return s


def test_a_loop_reads_as_it_was_written():
    """What only a name behind the loop could ask for is not shown: nothing asks."""
    shown = str(fwdad.trace(in_a_loop, np.ones(3), 4)).splitlines()
    assert shown[0] == "tape in_a_loop(x: float64[?], n: int):"
    assert shown[1:] == inspect.getsource(in_a_loop).splitlines()[1:]


def last_of(x, n):
    for i in range(n):
        y = np.sin(x[i]) * i
    return y + i


def test_what_is_read_behind_a_loop_is_carried():
    tape = fwdad.trace(last_of, np.ones(3), 3)
    x = np.array([0.3, 0.5, 0.8])
    assert tape(x, 2) == np.sin(0.5) + 1
    with pytest.raises(UnboundLocalError):
        tape(x, 0)
