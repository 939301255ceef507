"""Each program is traced once and replayed at other numbers, lengths, trip counts and branches."""

import pytest

from fwdad.api.jit import cache_info, jit
from tests.frontend import (
    branches,
    callables,
    catching,
    containers,
    corners,
    exit_stacks,
    generators,
    iterables,
    leaving_loops,
    loops,
    numpy_code,
    objects,
    protocols,
    slots,
    stores,
    views,
)
from tests.frontend.agreement import assert_agrees, bits, outcome, wide

TABLES = (
    loops,
    leaving_loops,
    iterables,
    branches,
    catching,
    stores,
    views,
    containers,
    objects,
    slots,
    exit_stacks,
    protocols,
    generators,
    callables,
    numpy_code,
    corners,
)
PROGRAMS = [program for table in TABLES for program in table.PROGRAMS]


def test_the_tables_are_broad():
    assert len(PROGRAMS) >= 120
    assert len({p.f for p in PROGRAMS}) == len(PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_tape_agrees_with_python(program):
    assert_agrees(program)


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_jit_agrees_with_python(program):
    compiled = jit(program.f, backend="numpy")
    as_bits = wide if program.widens else bits
    for args in (program.example, *program.replays):
        found, wanted = (outcome(f, args, as_bits) for f in (compiled, program.f))
        assert found == wanted
    assert cache_info(compiled).traces == 1
