"""Rules of functions that are registered by name, before anybody has imported them."""

import sys
import types

import pytest

import fwdad
from fwdad.rules.core.registry import find_rule, when_imported


@pytest.fixture
def late():
    """A module that tests import when they please."""
    module = types.ModuleType("fwdad_test_late")
    module.square = lambda x: x * x
    yield module
    sys.modules.pop(module.__name__, None)


def square_frule(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return x * x, 2 * x * x_dot


def test_actions_wait_for_the_import_and_keep_their_order(late):
    taken = []
    name = "fwdad_test_late.square"
    when_imported(name, lambda f: taken.append(("before", f, find_rule(f))))
    fwdad.frule(name, signature="(x)")(square_frule)
    when_imported(name, lambda f: taken.append(("after", f, find_rule(f).body)))
    assert find_rule(late.square) is None
    assert taken == []

    sys.modules[late.__name__] = late
    assert find_rule(late.square).body is square_frule
    assert taken == [("before", late.square, None), ("after", late.square, square_frule)]
    assert fwdad.derivative(late.square, 3.0) == 6.0

    when_imported(name, lambda f: taken.append("at once"))
    assert taken[2:] == ["at once"]


def test_a_module_without_the_function_yet_is_waited_for(late):
    sys.modules[late.__name__] = late
    taken = []
    when_imported("fwdad_test_late.cube", taken.append)
    assert taken == []
    late.cube = lambda x: x**3
    assert find_rule(late.cube) is None
    assert taken == [late.cube]


def test_a_second_rule_by_name_is_refused_before_and_after_the_import(late):
    name = "fwdad_test_late.square"
    fwdad.frule(name, signature="(x)")(square_frule)
    with pytest.raises(fwdad.errors.DuplicateRuleError, match="override=True"):
        fwdad.frule(name, signature="(x)")(lambda primals, tangents: None)
    sys.modules[late.__name__] = late
    with pytest.raises(fwdad.errors.DuplicateRuleError, match="override=True"):
        fwdad.frule(name, signature="(x)")(lambda primals, tangents: None)
    assert find_rule(late.square).body is square_frule


def test_an_overridden_rule_by_name_leaves_what_else_waits(late):
    name = "fwdad_test_late.square"
    taken = []
    fwdad.frule(name, signature="(x)")(lambda primals, tangents: None)
    when_imported(name, taken.append)
    fwdad.frule(name, signature="(x)", override=True)(square_frule)
    sys.modules[late.__name__] = late
    assert find_rule(late.square).body is square_frule
    assert taken == [late.square]


def test_a_rule_of_the_users_replaces_one_that_still_waits(late):
    fwdad.frule("fwdad_test_late.square", signature="(x)")(lambda primals, tangents: None)
    sys.modules[late.__name__] = late  # imported, but no rule has been looked up since
    with pytest.raises(fwdad.errors.DuplicateRuleError, match="override=True"):
        fwdad.frule(late.square)(square_frule)
    fwdad.frule(late.square, override=True)(square_frule)
    assert fwdad.derivative(late.square, 3.0) == 6.0
