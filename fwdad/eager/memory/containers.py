"""Python's containers, whose content is kept before it changes."""

from __future__ import annotations

import array
from collections import deque
from typing import Any

from fwdad.eager.run import STATE

CONTAINERS = (list, dict, set, deque, bytearray, array.array)


def log_container(o: Any) -> None:
    """Keep the content of a container."""
    run = STATE.run
    if run is not None:
        run.log.container(o)


def log_object(o: Any) -> None:
    """Keep the content of an object with items of its own, if it can be copied."""
    run = STATE.run
    if run is not None and hasattr(o, "copy"):
        run.log.container(o)
