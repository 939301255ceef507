"""Seeds and cotangents beside the structure that they must have."""

import numpy as np
import pytest

from fwdad.errors import SeedError
from fwdad.tangents.composite import flatten
from fwdad.tangents.matching import gather, map_tree, match, match_or_none
from fwdad.tangents.zero import ZERO, NoTangent
from tests.cases.plain_classes import Node, Rod


def test_objects_are_matched_by_field():
    x = Rod(1.0, np.ones(2))
    _, structure = flatten(x)
    other = Rod(5.0, np.zeros(2))
    assert match(structure, other) == [5.0, other.places]
    del other.name, other.nothing
    assert match(structure, other)[0] == 5.0
    assert match(structure, ZERO) == [ZERO, ZERO]
    other.width = 1.0
    assert match_or_none(structure, other) is None
    with pytest.raises(SeedError, match=r"the tree for t has the fields \['length'.*'width'"):
        match(structure, other, "t", "tree")


def test_a_missing_number_is_missed():
    _, structure = flatten({"rod": Rod(1.0, np.ones(2))})
    other = Rod(5.0, np.zeros(2))
    del other.length
    with pytest.raises(SeedError, match=r"for x\['rod'\] has the fields \['places'"):
        match(structure, {"rod": other})


def test_shared_objects_are_matched_once():
    node = Node(1.0)
    _, structure = flatten([node, node])
    one = Node(2.0)
    assert match(structure, [one, one]) == [2.0]
    assert gather(structure, [one, Node(3.0)]) == [[2.0, 3.0]]
    with pytest.raises(SeedError, match="two different seeds"):
        match(structure, [one, Node(3.0)])


def test_map_tree():
    x = Rod(2.0, np.ones(2))
    made = map_tree(lambda a, t: a * t, x, Rod(3.0, np.full(2, 5.0)))
    assert made.length == 6.0
    assert made.name == "rod"
    np.testing.assert_array_equal(made.places, 5.0)
    assert map_tree(lambda a, t: a * t, x, NoTangent) is x
