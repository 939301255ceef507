"""Forward mode on tapes."""

from fwdad.transforms.forward.entries import entries_of, place_entries
from fwdad.transforms.forward.known_indices import Contents
from fwdad.transforms.forward.lanes import Basis, lanes_type, load_lanes, unit_lanes, zero_lanes
from fwdad.transforms.forward.placing import (
    NotPlacedError,
    indices,
    place_lanes,
    places_meet,
    points_of,
)
from fwdad.transforms.forward.push import push_block, push_forward

__all__ = [
    "Basis",
    "Contents",
    "NotPlacedError",
    "entries_of",
    "indices",
    "lanes_type",
    "load_lanes",
    "place_entries",
    "place_lanes",
    "places_meet",
    "points_of",
    "push_block",
    "push_forward",
    "unit_lanes",
    "zero_lanes",
]
