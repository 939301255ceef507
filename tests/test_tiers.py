"""What the markers of the tiers leave to the slow one."""

from itertools import product
from types import SimpleNamespace

import pytest

from tests.tiers import every, mark_slow


class Item:
    """As much of pytest's items as is looked at."""

    def __init__(self, name, case, *marks):
        self.nodeid, self.callspec = f"{name}[{case}]", SimpleNamespace(id=case)
        self.marks = [mark.mark for mark in marks]

    def iter_markers(self, name):
        return (mark for mark in self.marks if mark.name == name)

    def get_closest_marker(self, name):
        return next(self.iter_markers(name), None)

    def add_marker(self, mark):
        self.marks.append(mark.mark)


CASES = [f"{name}-{mode}" for name, mode in product("abc", ["plain", "jit"])]


def short(*marks, cases=CASES):
    items = [Item("test.py::test_f", case, *marks) for case in cases]
    mark_slow(items)
    return [item.callspec.id for item in items if not item.get_closest_marker("slow")]


def test_of_all_cases():
    assert short() == CASES
    assert short(pytest.mark.every(4)) == ["a-plain", "c-plain"]
    assert short(pytest.mark.every(4, first=1)) == ["a-jit", "c-jit"]


def test_of_those_with_a_part():
    others = ["a-plain", "b-plain", "c-plain"]
    assert short(pytest.mark.every(3, of="jit", first=2)) == [*others, "c-jit"]
    assert short(pytest.mark.slow_cases("jit")) == others


def test_named_cases():
    assert short(pytest.mark.slow_cases("b", "c-jit")) == ["a-plain", "a-jit", "c-plain"]
    both = pytest.mark.every(2), pytest.mark.slow_cases("b")  # those that are left are counted
    assert short(*both) == ["a-plain", "c-plain"]


def test_a_case_alone_stays():
    assert short(pytest.mark.every(4, first=1), cases=["b-jit"]) == ["b-jit"]


def test_functions_are_thinned_apart():
    items = [Item(f"test.py::test_{name}", case, pytest.mark.every(2))
             for name in "fg" for case in CASES[:3]]  # fmt: skip
    mark_slow([*items, SimpleNamespace(nodeid="test.py::test_h")])
    slow = [item.nodeid for item in items if item.get_closest_marker("slow")]
    assert slow == ["test.py::test_f[a-jit]", "test.py::test_g[a-jit]"]


def test_a_list_of_arguments():
    marked = pytest.mark.xfail
    found = every(2, [1, (2, 3), pytest.param(4, marks=marked, id="four")])
    assert [case.values for case in found] == [(1,), (2, 3), (4,)]
    assert [[mark.name for mark in case.marks] for case in found] == [[], ["slow"], ["xfail"]]
    assert found[2].id == "four"
