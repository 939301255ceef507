"""What the page of limits lists is refused, each item at the user's line; nothing else is tested."""

import copy
import inspect
import warnings
from pathlib import Path

import pytest
from numpy.testing import assert_equal

import fwdad
from fwdad.errors import UntraceableError
from fwdad.frontend import trace as tracing
from fwdad.frontend.syntax.loops import TraceWarning
from fwdad.frontend.trace import trace
from tests.frontend.refused import arrays, containers, kinds, objects, syntax, world

PAGE = Path(tracing.__file__).with_name("limits.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.partition("\n## ")[0].splitlines() if line.startswith("| ")][1:]
LISTED = {item.strip() for row in ROWS for item in row.split(" | ")[0].lstrip("| ").split(";")}
FOLLOWED = {item.removesuffix("\\*") for item in LISTED if item.endswith("\\*")}  # under `jit`
ITEMS = {item.removesuffix("\\*") for item in LISTED}
FILES = (syntax, containers, world, kinds, arrays, objects)
TABLE = [row for file in FILES for row in file.PROGRAMS]
ELSEWHERE = {
    # tests/cases/test_njit.py
    "stencils of Numba's",
    "methods of a `jitclass` of Numba's",
    # tests/frontend/test_limits.py
    "sets as arguments",
    "generators as arguments",
    "subclasses of `list` and `dict` as arguments",
    "branches and loops that are nested more than 90 deep, each `elif` of a chain and called functions included",
}


def test_each_item_has_a_program():
    assert {item for _, _, item, _ in TABLE} | ELSEWHERE == ITEMS


def refusal(call, f, args):
    given = copy.deepcopy(args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TraceWarning)
        with pytest.raises(UntraceableError) as caught:
            call(f, *given)
    return caught.value


def follows(f, args):
    """Whether a tape under ``jit`` follows its arguments; its value is then that of Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TraceWarning)
            found = fwdad.jit(f, backend="numpy")(*copy.deepcopy(args))
    except UntraceableError:
        return False
    assert_equal(found, f(*copy.deepcopy(args)))
    return True


def under_jit(f, *args):
    return fwdad.jit(f, backend="numpy")(*args)


@pytest.mark.parametrize(("f", "args", "item", "part"), TABLE, ids=[f.__name__ for f, *_ in TABLE])
def test_refused_at_the_line(f, args, item, part):
    lines, first = inspect.getsourcelines(f)
    marked = [first + k for k, line in enumerate(lines) if line.rstrip().endswith("# here")]
    one_tape_alone = item in FOLLOWED and follows(f, args)
    for call in (trace,) if one_tape_alone else (trace, under_jit):
        error = refusal(call, f, args)
        assert error.filename == f.__code__.co_filename, str(error)
        assert first <= error.lineno < first + len(lines), str(error)
        assert not marked or [error.lineno] == marked, str(error)
        assert error.offset is not None
        assert part in error.msg, str(error)


@pytest.mark.parametrize("item", sorted(FOLLOWED))
def test_followed(item):
    assert any(follows(f, args) for f, args, own, _ in TABLE if own == item)


PLAIN = [(f, args) for f, args, *_ in TABLE if f != arrays.derivative_of_at]


@pytest.mark.parametrize(("f", "args"), PLAIN, ids=[f.__name__ for f, _ in PLAIN])
def test_python_runs_it(f, args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f(*copy.deepcopy(args))
