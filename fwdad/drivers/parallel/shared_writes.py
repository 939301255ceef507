"""What threads share that a function writes: found in a run of its lifted source."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fwdad.drivers.parallel.jobs import Job
from fwdad.eager.build import Run, generator_state, set_generator_state
from fwdad.errors import SharedWriteError


def shared_write(job: Job, at: tuple[Any, ...]) -> str | None:
    """What f writes that other threads see, or draws from; None if nothing.

    f runs once, and nothing of what it writes stays.
    """
    watched = _watched()
    before = [_key(generator_state(o)) for o in watched]
    with Run(1, stays=False, watches=True) as run, run:
        states = [(o, generator_state(o)) for o in watched]
        job.call_plainly(*at)
        drawn = [o for o, b in zip(watched, before, strict=True) if _key(generator_state(o)) != b]
        for o, state in states:
            if o in drawn:
                set_generator_state(o, state)
        if drawn or run.generators:
            return "draws from a random generator"
        if run.log.reaches_outside():
            return "writes into " + _in_words(run)
    return None


def global_generators() -> tuple[Any, ...]:
    """NumPy's, and that of Python's ``random``."""
    return np.random.mtrand._rand, random._inst  # noqa: SLF001


def _watched() -> tuple[Any, ...]:
    """The generators that only f draws from: threads of Dask draw from Python's, too."""
    found = global_generators()
    return found[:1] if "distributed" in sys.modules else found


@contextmanager
def no_draws(what: str) -> Iterator[None]:
    """Refuse draws from the global generators: they would depend on which worker does what."""
    watched = _watched()
    before = [_key(generator_state(o)) for o in watched]
    yield
    if [_key(generator_state(o)) for o in watched] != before:
        raise SharedWriteError(
            f"{what} draws from a global random generator: what it draws would depend on which "
            "worker does which part. Draw before, and pass the draws as data"
        )


def check_shared_writes(job: Job, at: tuple[Any, ...]) -> None:
    """Refuse a function that threads cannot run at once."""
    what = shared_write(job, at)
    if what is not None:
        raise SharedWriteError(
            f"{_name(job.__wrapped__)} {what}, which threads share: their writes would meet, and "
            "the derivative be wrong. Take a ProcessPoolExecutor, whose workers have copies, or "
            "let f make it anew in each call"
        )


def _in_words(run: Run) -> str:
    log = run.log
    if log.arrays():
        return "an array from outside, " + ", ".join(
            f"{a.dtype} of shape {a.shape}" if isinstance(a, np.ndarray) else "a buffer"
            for a in log.arrays()
        )
    if log.objects():
        return f"{type(log.objects()[0][0]).__name__} from outside"
    names = [name for (place, _) in log.names() for name in [_name_of(place)] if name]
    return f"the variable {names[0]}" if names else "a variable from outside"


def _name_of(place: Any) -> str:
    return str(place[1]) if isinstance(place, tuple) else ""


def _name(f: Any) -> str:
    return getattr(f, "__qualname__", None) or repr(f)


def _key(state: Any) -> str:
    return repr({k: _plain(v) for k, v in state.items()} if isinstance(state, dict) else state)


def _plain(x: Any) -> Any:
    if isinstance(x, dict):
        return {k: _plain(v) for k, v in x.items()}
    return x.tolist() if isinstance(x, np.ndarray) else x
