"""The arguments of the evaluators: flattening, checks, and the number of lanes per run."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from fwdad.eager.arguments import Arguments, check_numbers
from fwdad.eager.forward import run_forward
from fwdad.errors import NotHolomorphicError, SeedError, UnsupportedTypeError, type_in_words
from fwdad.evaluation.signatures import Argnums, Function
from fwdad.tangents.composite import Structure
from fwdad.tangents.lanes import BLOCK
from fwdad.tangents.plain import plain
from fwdad.tangents.seeds import GivenSeeds, leaf_dtype, leaf_shape, random_seeds

# Lanes are chosen so that the lanes of one array stay near a core's cache, and never fewer than
# eight, below which the work done once per run is not shared (benchmarks/README.md). The first run
# tells how large the value is; it takes 64 directions at most.
_FEWEST_LANES = 8
_FIRST_LANES = 64


def arguments_of(
    f: Function,
    x: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    argnums: Argnums,
    *,
    seeded: bool = False,
) -> tuple[Arguments, bool]:
    """The flattened arguments, and whether ``argnums`` names a single one.

    With ``seeded``, tangents are given, and they determine what has none.
    """
    if not callable(f):
        message = f"the first argument must be the function; got {type_in_words(f)}"
        raise UnsupportedTypeError(message)
    code = getattr(f, "__code__", None)
    if code is not None and code.co_flags & inspect.CO_COROUTINE:
        message = f"{code.co_name} is an `async def`, and calling it does not run it: write a `def`"
        raise UnsupportedTypeError(message)
    if kwargs is not None and not isinstance(kwargs, Mapping):
        message = f"kwargs must be a dict of f's keyword arguments; got {type_in_words(kwargs)}"
        raise UnsupportedTypeError(message)
    if not isinstance(args, tuple):
        args = (args,)
    positions = positions_of(argnums, 1 + len(args))
    for k in () if seeded else positions:
        check_numbers(k, (x, *args)[k])
    return Arguments((x, *args), kwargs or {}, positions), not isinstance(argnums, (tuple, list))


def with_more(more: tuple[Any, ...], args: Any, argnums: Argnums | None) -> tuple[Any, Argnums]:
    """The ``args`` and ``argnums`` of a call ``vjp(f, x, *more)``."""
    if not more:
        return args, 0 if argnums is None else argnums
    args = args if isinstance(args, tuple) else (args,)
    return (*more, *args), tuple(range(1 + len(more))) if argnums is None else argnums


def are_several(f: Any, x: Any, v: Any, args: Any, kwargs: Any, argnums: Any) -> bool:
    """Whether ``jvp(f, x, v)`` with two tuples means several arguments, as in JAX.

    It does where f cannot take x as one argument. Raises where it can take it as either.
    """
    if type(x) is not type(v) or type(x) not in (tuple, list) or not x:
        return False
    if args or kwargs or not isinstance(argnums, int):
        return False
    as_one, as_several = _takes(f, 1), _takes(f, len(x))
    if not (as_one and as_several):
        return as_several
    kind = type(x).__name__
    name = getattr(f, "__name__", "f")
    parts = "a, da" if len(x) == 1 else "a, (da, db), args=(b,), argnums=(0, 1)"
    raise UnsupportedTypeError(
        f"x and v are {kind}s, and {name} could take x as one argument or its parts as several: "
        f"write jvp(f, {parts}) for the parts, as JAX means it, and jvp(f, x, (v,), argnums=(0,)) "
        f"for the {kind}"
    )


def _takes(f: Any, count: int) -> bool:
    """Whether a function can be called with that many arguments, as far as can be told."""
    if isinstance(f, np.ufunc):
        return f.nin == count
    try:
        inspect.signature(f).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # it has none
        return True
    return True


def argument_numbers(argnums: Any) -> Argnums:
    """The argument numbers as Python ints; a bool is refused."""
    if type(argnums) is int:  # the commonest
        return argnums
    several = isinstance(argnums, (tuple, list))
    try:
        numbers = tuple([_index(k) for k in (argnums if several else (argnums,))])
    except TypeError:
        came = repr(argnums) if several else type_in_words(argnums)
        message = f"argnums must be an int or a tuple of ints; got {came}"
        if isinstance(argnums, np.ndarray):
            message += ". What takes only f returns a function: write grad(f)(x), not grad(f, x)"
        raise UnsupportedTypeError(message) from None
    return numbers if several else numbers[0]


def _index(k: Any) -> int:
    if isinstance(k, bool):
        raise TypeError(k)
    return operator.index(k)


def positions_of(argnums: Argnums, count: int) -> tuple[int, ...]:
    """The positions that ``argnums`` names among the positional arguments."""
    numbers = argument_numbers(argnums)
    indices = (numbers,) if isinstance(numbers, int) else numbers
    if not all(-count <= k < count for k in indices):
        message = (
            f"argnums is {argnums!r}; it must contain positions of positional arguments, counted "
            f"from 0, and f has {count} of them here"
        )
        raise UnsupportedTypeError(message)
    if not indices:
        message = f"argnums is {argnums!r}: it names no argument to differentiate with respect to"
        raise UnsupportedTypeError(message)
    positions = tuple([k % count for k in indices])
    if len(set(positions)) < len(positions):
        message = f"argnums names an argument twice: {tuple(indices)}"
        raise UnsupportedTypeError(message)
    return positions


def joint_structure(arguments: Arguments, single: bool) -> Structure:
    """The structure that a seed must have: x's own, or a tuple of them for several argnums."""
    if single:
        return arguments.structures[0]
    joint = Structure("tuple", tuple(s.value for s in arguments.structures))
    start = 0
    for structure, count in zip(arguments.structures, arguments.counts, strict=True):
        joint.children.append(_shifted(structure, start, {}))
        start += count
    return joint


def _shifted(structure: Structure, start: int, seen: dict[int, Structure]) -> Structure:
    if id(structure) in seen:
        return seen[id(structure)]
    shifted = seen[id(structure)] = Structure(structure.kind, structure.value)
    shifted.keys, shifted.data = structure.keys, structure.data
    shifted.index = structure.index + start
    shifted.children = [_shifted(c, start, seen) for c in structure.children]
    return shifted


class AutoWidth:
    """The number of lanes per run, by the sizes of the argument and of the value."""

    def __init__(self, count: int, leaves: list[Any]) -> None:
        self.count = count
        self.nbytes = _nbytes(leaves)

    def __call__(self, value_leaves: list[Any] | None, largest: int = 0) -> int:
        """The width of the next run; ``value_leaves`` is None before the first.

        ``largest`` is the size of the largest array on the way: lanes of more than 32 MB are taken
        from the system, and given back, at each operation.
        """
        nbytes = max(self.nbytes, largest)
        if value_leaves is not None:
            nbytes = max(nbytes, _nbytes(value_leaves))
        width = max(_FEWEST_LANES, BLOCK // max(nbytes, 1))
        if value_leaves is None:
            width = min(width, _FIRST_LANES)
        return max(1, min(self.count, width))


def _nbytes(leaves: list[Any]) -> int:
    return sum(math.prod(leaf_shape(x)) * leaf_dtype(plain(x)).itemsize for x in leaves)


def width_of(chunk: int | str | None, count: int, leaves: list[Any]) -> int | AutoWidth:
    """The number of lanes per run."""
    check_chunk(chunk)
    if chunk is None:
        return max(count, 1)
    return AutoWidth(count, leaves) if isinstance(chunk, str) else int(chunk)


def chunk_on_tape(chunk: int | str | None, count: int, leaves: list[Any]) -> int | str | None:
    """The option of a tape, which pushes all directions at once if it is not asked for fewer.

    So it does up to twice as many as usual.
    """
    width = width_of(chunk, count, leaves)
    n = width if isinstance(width, int) else width(None)
    return n if (2 * n if chunk == "auto" else n) < count else chunk


def check_chunk(chunk: Any) -> None:
    """Raise if ``chunk`` is not a number of lanes."""
    if chunk is None or (isinstance(chunk, str) and chunk == "auto"):
        return
    if isinstance(chunk, bool) or not isinstance(chunk, (int, np.integer)) or chunk < 1:
        message = f'chunk must be a positive integer, "auto" or None, not {chunk!r}'
        raise SeedError(message)


def check_mode(mode: str) -> None:
    """Raise if ``mode`` is unknown."""
    if mode not in ("auto", "forward", "reverse"):
        message = f'mode must be "auto", "forward" or "reverse", not {mode!r}'
        raise ValueError(message)


def check_holomorphic(
    f: Function, arguments: Arguments, holomorphic: bool, *, has_aux: bool, outputs: str
) -> None:
    """Complex arguments: the derivative is one complex number only if J(iv) = iJ(v)."""
    if "c" not in [leaf_dtype(plain(x)).kind for x in arguments.leaves]:
        return
    if not holomorphic:
        raise NotHolomorphicError(COMPLEX_ARGUMENT)
    seeds = random_seeds(arguments.leaves, 1, np.random.default_rng(0))
    both = [np.concatenate([v, 1j * v]) if v.dtype.kind == "c" else None for v in seeds]
    if any(v is None for v in both):
        raise NotHolomorphicError(REAL_ARGUMENT)
    directions = GivenSeeds.__new__(GivenSeeds)
    directions.arrays, directions.count, directions.single = both, 2, False
    outcome = run_forward(f, arguments, directions, 2, has_aux=has_aux, outputs=outputs)
    for t in outcome.tangents:
        if not commutes_with_i(plain(t)):
            raise NotHolomorphicError(NOT_HOLOMORPHIC)


COMPLEX_ARGUMENT = (
    "the argument is complex: if the function is holomorphic there, call jvp, derivative, "
    "jacobian, jacfwd or linearize with holomorphic=True; otherwise differentiate with respect to "
    "the real and imaginary parts"
)
REAL_ARGUMENT = "holomorphic=True: every argument to differentiate must be complex"
NOT_HOLOMORPHIC = (
    "holomorphic=True, but J(iv) = iJ(v) does not hold here: the function takes a conjugate, an "
    "absolute value, or a real or imaginary part somewhere"
)


def commutes_with_i(lanes: Any) -> Any:
    """Whether the tangent along iv, lane 1, is i times that along v, lane 0; also traced."""
    turned, actual = 1j * lanes[0], lanes[1]
    single = lanes.dtype in (np.float32, np.complex64)
    relative, absolute = (1e-3, 1e-5) if single else (1e-6, 1e-9)
    near = relative * np.abs(turned) + absolute * np.max(np.abs(lanes), initial=0.0)
    both_nan = np.isnan(turned) & np.isnan(actual)
    return np.all((actual == turned) | (np.abs(actual - turned) <= near) | both_nan)
