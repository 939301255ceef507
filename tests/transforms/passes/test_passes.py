"""Every pass, on every program: well formed, bit for bit the same results, the same exceptions."""

import copy
import warnings

import numpy as np
import pytest

from fwdad.codegen.numpy_backend.source import compiled, numpy_source
from fwdad.ir.check import check_program, checked
from fwdad.ir.ops import Call, Loop
from fwdad.transforms.forward import push_forward
from fwdad.transforms.passes import PASSES, hoist, optimise
from tests.ir.programs import CASES, named
from tests.ir.running import bits, call, count, run, traced, values
from tests.transforms.forward.programs import PROGRAMS

ALL = [*PASSES, hoist]


@pytest.fixture(autouse=True)
def _python_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


@pytest.mark.parametrize("case", CASES, ids=str)
def test_tape_computes_what_python_computes(case):
    tape = traced(case.f, *case.runs[0])
    optimise(tape.program, checked)
    function = compiled(numpy_source(tape.program))
    for args in case.runs:
        wanted, _ = call(case.f, args)
        given = copy.deepcopy(args)
        found = tape.rebuild(list(function(*given, *(c.fetch() for c in tape.captures))))
        np.testing.assert_array_equal(values(found), values(wanted))
    for args in case.raises:
        with pytest.raises(Exception) as wanted:  # noqa: PT011  (the next line compares it)
            call(case.f, args)
        with pytest.raises(type(wanted.value)) as found:
            function(*copy.deepcopy(args), *(c.fetch() for c in tape.captures))
        assert str(found.value) == str(wanted.value)


@pytest.mark.parametrize("run_pass", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_pass_alone_changes_no_bit(case, run_pass):
    tape = traced(case.f, *case.runs[0])
    runs = [*case.runs, *case.raises]
    before = [run(tape, args) for args in runs]
    checked(run_pass, tape.program)
    assert [run(tape, args) for args in runs] == before


@pytest.mark.parametrize("case", CASES, ids=str)
def test_optimise_changes_no_bit_and_settles(case):
    tape = traced(case.f, *case.runs[0])
    runs = [*case.runs, *case.raises]
    before = [run(tape, args) for args in runs]
    size = tape.program.count()
    optimise(tape.program, checked)
    assert [run(tape, args) for args in runs] == before
    assert tape.program.count() <= size + 2 * tape.program.count(Loop)  # a guard for each loop
    assert not optimise(tape.program, checked)


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_keep_every_bit(name):
    f, args = PROGRAMS[name]
    tape = traced(f, *args)
    rng = np.random.default_rng(0)
    lanes = rng.standard_normal((3, *np.shape(args[0])))
    seeds = [True, *[False] * (len(tape.program.block.params) - 1)]
    pushed, constants = push_forward(tape.program, 3, seeds)
    check_program(pushed)
    inputs = [*tape.leaves(list(args)), lanes, *constants]
    before = bits(compiled(numpy_source(pushed))(*copy.deepcopy(inputs)))
    size = pushed.count()
    optimise(pushed, checked)
    assert pushed.count() <= size
    assert bits(compiled(numpy_source(pushed))(*copy.deepcopy(inputs))) == before


def test_op_count_does_not_depend_on_the_trip_count():
    counts = set()
    for n in (10, 100_000):
        tape = traced(named("doubled").f, 2.0, n)
        optimise(tape.program, checked)
        counts.add(tape.program.count())
    assert counts == {2}  # the loop, and the sum in its body


def test_inner_loop_stays_inside_the_outer():
    tape = traced(named("nested").f, 2.0, 2, 3)
    optimise(tape.program, checked)
    (outer,) = tape.program.block.ops
    (inner,) = outer.body.ops
    assert isinstance(outer, Loop)
    assert isinstance(inner, Loop)
    assert len(inner.body.ops) == 1


def test_one_sine_is_left_in_a_body():
    tape = traced(named("sines").f, 0.7, 3)
    assert count(tape, np.sin) == 3
    optimise(tape.program, checked)
    assert count(tape, np.sin) == 1
    assert count(tape, np.cos) == 1


def test_programs_that_are_called_are_optimised_too():
    def power(x, n):
        if n == 0:
            return x * 0.0 + 1.0
        return np.sin(x) * np.cos(x) * power(x, n - 1) + np.sin(x)

    tape = traced(power, 0.7, 3)
    called = {op.program for op in tape.program.walk() if isinstance(op, Call)}
    before = run(tape, (0.7, 4))
    optimise(tape.program, checked)
    assert len(called) == 1
    assert sum(getattr(op, "function", None) is np.sin for p in called for op in p.walk()) == 1
    assert run(tape, (0.7, 4)) == before
    assert not optimise(tape.program, checked)
