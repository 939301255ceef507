"""Random generators: their states before the first draw, and the arrays that they write."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.eager.run import STATE

_GENERATORS = ("numpy.random", "random")


def note_generator(o: Any) -> bool:
    """Keep the state of a random generator before its first draw; whether it is one."""
    run = STATE.run
    if run is not None and type(o).__module__.startswith(_GENERATORS):
        run.note_generator(o)
        return True
    return False


def note_draw(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Keep a generator's state, and what it may write, before one of its methods is called."""
    # bound by Python, the generator is the first argument
    if note_generator(getattr(f, "__self__", None)) or (args and note_generator(args[0])):
        log_drawn_into((*args, *kwargs.values()))


def log_drawn_into(values: tuple[Any, ...]) -> None:
    """Keep the content of what a generator may shuffle or fill."""
    for v in values:
        if type(v) is np.ndarray:
            STATE.run.writes(v)
        elif isinstance(v, list):
            STATE.run.log.container(v)
