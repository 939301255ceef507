"""`README.md` beside this file: each case has a test, and each test that it names is there."""

import ast
import re
from pathlib import Path

import pytest

from tests.cases.aliasing import ALIASING
from tests.cases.mutation import MUTATIONS
from tests.cases.test_reverse import RECORDED

HERE = Path(__file__).parent
TEXT = (HERE / "README.md").read_text(encoding="utf-8")
SECTIONS = dict(part.split("\n", 1) for part in TEXT.split("\n## ")[1:])


def rows(section):
    """The cells of a table, but for its head."""
    lines = [line for line in SECTIONS[section].splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r" \| ", line.strip("| "))] for line in lines[1:]]


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([\w./]+\.py::\w+)`", TEXT))))
def test_named_tests_exist(name):
    file, function = name.split("::")
    tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
    assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(
    ("section", "count"),
    [
        ("Forward, chunks, duals", 23),
        ("Loops and branches on the tape", 8),
        ("In place, in reverse", 13),
        ("Reversible programs", 8),
    ],
)
def test_every_number_has_tests(section, count):
    table = rows(section)
    assert [row[0] for row in table] == [str(k) for k in range(1, count + 1)]
    assert all("::test_" in cell for row in table for cell in row[1:])


def test_every_form_has_programs_that_run_in_every_mode():
    known = {str(program) for program in MUTATIONS + ALIASING}
    for form, names in rows("Mutation and aliasing"):
        assert names.split(), form
        assert set(names.split()) <= known - RECORDED, form
