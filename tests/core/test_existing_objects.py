"""Which objects existed when a block was entered."""

import gc
import sys
import threading

import pytest

from fwdad.core.existing_objects import Existing


class Thing:
    def __init__(self, held=None):
        self.held = held


@pytest.fixture(autouse=True)
def _nothing_stays_frozen():
    before = gc.get_freeze_count()
    yield
    assert gc.get_freeze_count() == before


@pytest.fixture(params=["by nobody", "by the user"])
def _frozen(request):
    if request.param == "by nobody":
        yield
        return
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("_frozen")
def test_old_and_new_objects():
    old = [Thing(), [[]], {"a": []}]
    with Existing() as existed, existed:
        new = [Thing(), [[]], {"a": []}]
        assert all(o in existed for o in old)
        assert not any(o in existed for o in new)


@pytest.mark.usefixtures("_frozen")
def test_who_holds_a_dict_of_numbers():
    old = Thing({"a": 1.0})
    apart = {"b": 1.0}
    with Existing() as existed, existed:
        new = Thing({"a": 1.0})
        assert existed.hold(old.held)
        assert not existed.hold(new.held)
        old.also = apart
        assert existed.hold(apart)
        assert new not in existed


def test_one_inside_another():
    first = Thing()
    with Existing() as outer, outer:
        second = Thing({"a": 1.0})
        with Existing() as inner, inner:
            third = Thing()
            assert inner.hold(second.held)
            assert first in inner
            assert second in inner
            assert third not in inner
        fourth = Thing()
        assert first in outer
        assert not any(o in outer for o in (second, third, fourth))
        assert not outer.hold(second.held)


def test_in_two_threads():
    first, entered, left = Thing(), threading.Event(), threading.Event()
    found = []

    def other():
        with Existing() as existed, existed:
            entered.set()
            left.wait(20)
            third = Thing()
            found.extend([first in existed, second in existed, third in existed])

    thread = threading.Thread(target=other)
    with Existing() as existed, existed:
        second = Thing()
        thread.start()
        assert entered.wait(20)
        assert second not in existed
    left.set()
    thread.join(20)
    assert found == [True, True, False]


def test_an_error_ends_it():
    with pytest.raises(ZeroDivisionError), Existing() as existed, existed:
        raise ZeroDivisionError
    assert gc.get_freeze_count() == 0


def test_nothing_is_kept_when_it_is_left():
    """Whoever counts the references to a new object counts its owners alone."""
    thing = Thing()
    before = sys.getrefcount(thing)
    with Existing() as existed, existed:
        new = Thing()
        assert new not in existed
        within = sys.getrefcount(new)
    after = sys.getrefcount(new)
    assert within > after == before
