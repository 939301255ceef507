"""Forward mode on tapes."""

from fwdad.tape.forward.lanes import Basis, lanes_type, load_lanes, unit_lanes, zero_lanes
from fwdad.tape.forward.push import push_block, push_forward

__all__ = [
    "Basis",
    "lanes_type",
    "load_lanes",
    "push_block",
    "push_forward",
    "unit_lanes",
    "zero_lanes",
]
