"""One problem: its program as array code and in loops, its arguments, and peers' programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Problem:
    """One problem of the benchmark.

    Attributes
    ----------
    name : str
        As the benchmark calls it.
    arrays, loops : callable
        The program, as array code and in loops.
    make : callable
        From a size to the arguments.
    tiny, size : tuple of int
        Where results are checked, and where they are timed.
    argnums : tuple of int
        The arguments that are differentiated.
    bound : float
        What the derivative may cost, in evaluations of the compiled program.
    for_jax, for_torch : callable
        From the module to the program for it.
    jacobian : bool
        Whether the value is an array, and its Jacobian is asked for.
    derivatives : tuple of callables
        The programs that compute the derivatives, where these are no gradients; peers' programs
        compute them, too.
    """

    name: str
    arrays: Callable[..., Any]
    loops: Callable[..., Any]
    make: Callable[..., Arguments]
    tiny: tuple[int, ...]
    size: tuple[int, ...]
    argnums: tuple[int, ...]
    bound: float
    for_jax: Callable[[Any], Callable[..., Any]]
    for_torch: Callable[[Any], Callable[..., Any]]
    jacobian: bool = False
    derivatives: tuple[Callable[..., Any], ...] = ()
