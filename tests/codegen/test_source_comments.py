"""Generated source shows the user's lines, and is the same in every process."""

import ast
import itertools
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import fwdad
from fwdad.codegen.numpy_backend.source import numpy_source
from fwdad.errors import Location
from fwdad.frontend.syntax.loops import TraceWarning
from fwdad.ir.ops import Loop
from tests.frontend import branches, iterables, leaving_loops, loops
from tests.tiers import every

STEP = 0.5


def diffuse(u, rate, n):
    for _ in range(n):
        flux = rate * (u[1:] - u[:-1])  # between cells
        u = u.copy()
        u[1:] -= flux
        if u[0] > 2.0:  # noqa: SIM108
            u = u / 2.0
        else:
            u = half(u)
    while np.sum(u) > 100.0:
        u = np.sqrt(u)
    return u


def half(u):
    return STEP * u


ARGS = (np.arange(5.0), 0.1, 3)


def test_lines_of_the_user_stand_above_what_comes_from_them():
    first = diffuse.__code__.co_firstlineno

    def at(k):
        return f"test_source_comments.py:{first + k}"

    last = half.__code__.co_firstlineno - first + 1
    assert fwdad.show(diffuse, *ARGS).splitlines() == [
        "def diffuse(u, rate, n, STEP):",
        f"    for _ in range(n):  # {at(1)}",
        f"        flux = rate * (u[1:] - u[:-1])  # {at(2)}",
        f"        # {at(3)}: u = u.copy()",
        "        u_2 = u.copy()",
        f"        # {at(4)}: u[1:] -= flux",
        "        u_2[1:] -= flux",
        f"        # {at(5)}: if u[0] > 2.0:  # noqa: SIM108",
        "        if u_2[0] > 2.0:",
        f"            # {at(6)}: u = u / 2.0",
        "            u = u_2 / 2.0",
        "        else:",
        f"            # {at(last)}: return STEP * u",
        "            u = STEP * u_2",
        f"    while np.sum(u) > 100.0:  # {at(9)}",
        f"        u = np.sqrt(u)  # {at(10)}",
        "    return (u,)",
    ]


def test_one_comment_for_each_run_of_lines():
    pytest.importorskip("numba")
    u = np.linspace(0, 5, 70)  # of a few elements each would have lines of its own
    shown = fwdad.show(fwdad.jacfwd(diffuse), u, *ARGS[1:], backend="numba")
    first = diffuse.__code__.co_firstlineno
    comments = [line.strip() for line in shown.splitlines() if line.strip().startswith("# ")]
    for k in (1, 2, 4, 5, 6, 9, 10):
        assert f"# test_source_comments.py:{first + k}: {diffuse_lines()[k].strip()}" in comments, k
    assert all(one != following for one, following in itertools.pairwise(comments))
    assert len(comments) <= len(set(comments)) + 1  # what is moved out of a loop parts its line
    assert (
        "evaluation/evaluators.py" not in shown
    )  # where a derivative is taken is not the user's code


def diffuse_lines():
    text = Path(__file__).read_text(encoding="utf-8")
    return text.splitlines()[diffuse.__code__.co_firstlineno - 1 :]


def test_a_loop_is_where_its_statement_is():
    tape = fwdad.trace(diffuse, *ARGS)
    first = diffuse.__code__.co_firstlineno
    found = [op.location.line for op in tape.program.walk() if isinstance(op, Loop)]
    assert found == [first + 1, first + 9]


def test_the_comments_change_no_code():
    tables = (loops, leaving_loops, iterables, branches)
    for case in (p for table in tables for p in table.PROGRAMS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TraceWarning)
            tape = fwdad.trace(case.f, *case.example)
        source = numpy_source(tape.program)
        assert ast.dump(ast.parse(source.text)) == ast.dump(ast.parse(source.code))


def test_a_file_that_is_gone_leaves_the_places():
    tape = fwdad.trace(half, np.ones(2))
    for op in tape.program.walk():
        op.location = Location("/nowhere/gone.py", 7, 1)
    assert numpy_source(tape.program).text.splitlines()[1:] == [
        "    return (STEP * u,)  # gone.py:7",
    ]


@pytest.mark.slow_cases("numpy")
@pytest.mark.parametrize("backend", every(2, ["numpy", "numba", "tape"]))
def test_source_is_the_same_in_every_process(backend):
    if backend == "numba":
        pytest.importorskip("numba")
    code = (
        "import numpy as np, fwdad\n"
        "from tests.codegen.test_source_comments import diffuse, ARGS\n"
        "from tests.transforms.forward.programs import lorenz\n"
        f"print(fwdad.show(fwdad.jacfwd(diffuse), *ARGS, backend={backend!r}))\n"
        f"print(fwdad.show(fwdad.jacfwd(lorenz), np.ones(3), backend={backend!r}))\n"
    )
    texts = set()
    for seed in ("0", "271828"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        texts.add(done.stdout)
    assert len(texts) == 1
    assert "def " in texts.pop() or backend == "tape"
