"""Forward mode on tapes."""

from fwdad.transforms.forward.lanes import Basis, lanes_type, load_lanes, unit_lanes, zero_lanes
from fwdad.transforms.forward.placing import place_lanes, places_meet
from fwdad.transforms.forward.push import push_block, push_forward

__all__ = [
    "Basis",
    "lanes_type",
    "load_lanes",
    "place_lanes",
    "places_meet",
    "push_block",
    "push_forward",
    "unit_lanes",
    "zero_lanes",
]
