"""Objects read and made without running any code of their class."""

import pytest

from fwdad.tangents.objects import (
    attributes_of,
    blank,
    delete_attribute,
    has_fields,
    set_attributes,
    slots_of,
)
from tests.cases.plain_classes import Checked, Derived, Rod, Slotted


class Hidden(Slotted):
    """A class attribute hides a slot of the base."""

    a = 5.0


class OneSlot:
    __slots__ = "only"  # noqa: PLC0205  (users write it)


def test_slots():
    assert set(slots_of(Slotted)) == {"_Slotted__hidden", "a", "b", "unset"}
    assert slots_of(Derived) == ("w",)
    assert slots_of(OneSlot) == ("only",)
    assert "a" not in slots_of(Hidden)
    assert slots_of(Rod) == ()


def test_attributes():
    o = Slotted(1.0, 2.0)
    assert attributes_of(o) == {"_Slotted__hidden": 1.0, "a": 1.0, "b": 2.0}
    delete_attribute(o, "a")
    set_attributes(o, {"unset": 7.0})
    assert attributes_of(o) == {"_Slotted__hidden": 1.0, "b": 2.0, "unset": 7.0}
    both = Derived(1.0, 2.0)
    assert attributes_of(both) == {"w": 1.0, "scale": 2.0}
    delete_attribute(both, "scale")
    assert attributes_of(both) == {"w": 1.0}


def test_a_blank_object_runs_no_constructor():
    o = blank(Checked)
    assert type(o) is Checked
    set_attributes(o, {"a": -1.0})
    assert attributes_of(o) == {"a": -1.0}
    with pytest.raises(AttributeError):
        o.a = 2.0


class Sized(list):
    pass


@pytest.mark.parametrize("cls", [Rod, Slotted, Derived, OneSlot, type("Empty", (), {})])
def test_attributes_are_all(cls):
    assert has_fields(cls)


@pytest.mark.parametrize("cls", [list, Sized, ValueError, Hidden, type("Own", (dict,), {})])
def test_more_than_attributes(cls):
    assert not has_fields(cls)
