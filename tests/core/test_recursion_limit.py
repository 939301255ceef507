"""The recursion limit while derivatives are computed: raised together, and restored."""

import sys
import threading

import pytest

from fwdad.core import recursion_limit
from fwdad.core.recursion_limit import HigherLimit, stack_size, under_hooks


@pytest.fixture(autouse=True)
def own_limit():
    limit = sys.getrecursionlimit()
    yield limit
    changed = sys.getrecursionlimit() != limit
    sys.setrecursionlimit(limit)
    assert not changed


def test_it_is_restored(own_limit):
    with HigherLimit(own_limit + 500) as raised, raised:
        assert sys.getrecursionlimit() == own_limit + 500
    assert sys.getrecursionlimit() == own_limit


def test_a_lower_one_changes_nothing(own_limit):
    with HigherLimit(own_limit - 100) as raised, raised:
        assert sys.getrecursionlimit() == own_limit


def test_it_is_restored_after_an_exception(own_limit):
    with pytest.raises(KeyError), HigherLimit(own_limit + 500) as raised, raised:
        raise KeyError
    assert sys.getrecursionlimit() == own_limit


def test_nested_ones_hold_together(own_limit):
    with HigherLimit(own_limit + 500) as outer, outer:
        with HigherLimit(own_limit + 900) as inner, inner:
            assert sys.getrecursionlimit() == own_limit + 900
        assert sys.getrecursionlimit() == own_limit + 500
        with HigherLimit(own_limit + 100) as inner, inner:
            assert sys.getrecursionlimit() == own_limit + 500


def test_those_of_threads_may_overlap(own_limit):
    first, second = HigherLimit(own_limit + 500), HigherLimit(own_limit + 300)
    first.begin()
    other = threading.Thread(target=second.begin)
    other.start()
    other.join()
    first.end()
    assert sys.getrecursionlimit() == own_limit + 300
    second.end()
    second.end()
    assert sys.getrecursionlimit() == own_limit


def test_what_the_program_sets_meanwhile_stays(own_limit):
    with HigherLimit(own_limit + 500) as raised, raised:
        sys.setrecursionlimit(own_limit + 77)
        with HigherLimit(own_limit + 900) as inner, inner:
            assert sys.getrecursionlimit() == own_limit + 900
        assert sys.getrecursionlimit() == own_limit + 500
    assert sys.getrecursionlimit() == own_limit + 77
    sys.setrecursionlimit(own_limit)


def test_a_small_stack_bounds_it(monkeypatch):
    monkeypatch.setattr(recursion_limit, "stack_size", lambda *_: 2 << 20)
    under_hooks.cache_clear()
    monkeypatch.setattr(sys, "version_info", (3, 11))
    assert under_hooks(1000, main=True, chosen=0) == 2048
    assert under_hooks(5000, main=True, chosen=1) == 5000  # never below the program's own
    monkeypatch.setattr(sys, "version_info", (3, 12))
    assert under_hooks(1000, main=True, chosen=2) == 9000
    under_hooks.cache_clear()


def test_the_size_of_a_threads_stack():
    assert stack_size(main=False, chosen=1 << 19) == 1 << 19
    assert stack_size(main=True, chosen=1 << 19) >= 1 << 20
    assert stack_size(main=False, chosen=0) >= 1 << 20
