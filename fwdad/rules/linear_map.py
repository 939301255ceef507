"""Linear maps that are given with their adjoints."""

from __future__ import annotations

from typing import Any

from fwdad.rules.core.adjoints import transpose
from fwdad.rules.core.by_name import apply_linear, refuse_symbols
from fwdad.rules.core.define import linear
from fwdad.tangents.linear_map import Map, mapped

linear(mapped, argnums=0)


@transpose(mapped)
def mapped_transpose(y_bar: Any, _x: Any, apply: Map, adjoint: Map) -> Any:
    """The adjoint of a map, whose adjoint is the map."""
    refuse_symbols(y_bar)

    def one(lane: Any) -> Any:
        return mapped(lane, adjoint, apply)

    return apply_linear(mapped, (y_bar,), 0, one, by_lane=True, apply=adjoint, adjoint=apply)
