"""Random numbers from a generator that the traced program makes itself, from a known seed.

Each run of such a program draws the same numbers, so they are drawn when it is traced. That holds
as long as each draw is met once: in the loop or branch where its generator was made.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.frontend.calls.tables import METHODS_OF, builtin
from fwdad.frontend.guards import GENERATORS
from fwdad.frontend.syntax.interpreter import Interpreter
from fwdad.frontend.syntax.raising import native
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol

_BITS = (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64)


def _here(tracer: Tracer) -> Any:
    """The innermost loop or branch that is being traced."""
    regions = tracer.recorder.journal.regions
    return regions[-1] if regions else None


def _known(tracer: Tracer, x: Any, what: str) -> Any:
    """A seed or an option of a draw: integers may be assumed, other unknown values are refused."""
    x = tracer.values.number(x)
    if isinstance(x, (list, tuple)):
        return type(x)(_known(tracer, item, what) for item in x)
    if type(x) is not Symbol:
        return x
    if x.is_array or x.dtype.kind not in "biu":
        message = (
            f"{what} depends on values that are unknown at trace time: draw outside the function, "
            "and pass the array as an argument"
        )
        raise UntraceableError(message, tracer.position.location())
    return tracer.values.known(x)


def _made_by(cls: Any) -> None:
    @builtin(cls)
    def make(tracer: Tracer, seed: Any = None) -> Any:
        seed = _known(tracer, seed, "the seed of a random generator")
        if seed is None:
            message = (
                "random numbers drawn without a seed differ from run to run: draw them outside "
                "the function, and pass them as an argument"
            )
            raise UntraceableError(message, tracer.position.location())
        bits = native(cls, seed)
        outside = isinstance(seed, (*GENERATORS, np.random.BitGenerator))
        if not outside or id(seed) in tracer.recorder.generators:
            tracer.recorder.generators[id(bits)] = (bits, _here(tracer))
        return bits


for _cls in (np.random.default_rng, *GENERATORS, *_BITS):
    _made_by(_cls)


def draw(tracer: Interpreter, method: Any, args: Any, kwargs: Any) -> Any:
    """Call a method of a random generator."""
    owner = method.__self__
    _, place = tracer.recorder.generators.get(id(owner), (None, method))
    if place is not _here(tracer):
        message = (
            "random numbers are drawn from a generator that was made elsewhere: make it here from "
            "a seed, or draw them outside the function and pass them as an argument"
        )
        raise UntraceableError(message, tracer.position.location())
    if method.__name__ == "shuffle" and args and isinstance(args[0], list):
        tracer.outside.may_change(args[0])
        tracer.recorder.journal.touch(args[0])
        return native(method, args[0])
    what = f"a draw by `{method.__name__}`"
    args = [_known(tracer, a, what) for a in args]
    kwargs = {name: _known(tracer, value, what) for name, value in kwargs.items()}
    return tracer.operations.constants(native(lambda: method(*args, **kwargs)))


METHODS_OF.update(dict.fromkeys(GENERATORS, draw))
