"""What stands beside fwdad's gradients: each tool as a call that returns value and gradient."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.reverse_programs.problem import Problem

Call = Callable[[], Any]


class NotWrittenError(Exception):
    """The tool has no version of this program; the row shows a dash."""


def bound(f: Any, args: Sequence[Any]) -> Call:
    """A call without arguments."""
    return lambda: f(*args)


def numba_call(f: Any, args: Sequence[Any]) -> Call:
    """A program under Numba, and the functions of its module that it calls."""
    from numba import njit

    helpers = {
        name: njit(held)
        for name, held in f.__globals__.items()
        if isinstance(held, types.FunctionType) and name in f.__code__.co_names
    }
    return bound(njit(_with_globals(f, helpers)), args)


def by_hand(problem: Problem, args: Sequence[Any]) -> Call:
    """Adjoint code by hand, under Numba."""
    from benchmarks.reverse_hand import HAND

    if problem.name not in HAND:
        raise NotWrittenError
    f = HAND[problem.name]
    return numba_call(f, args) if isinstance(f, types.FunctionType) else bound(f, args)


def jax_call(problem: Problem, args: Sequence[Any]) -> Call:
    """JAX's version, compiled; the arguments lie on its device beforehand."""
    import jax

    from benchmarks import reverse_jax

    programs = reverse_jax.programs()
    if problem.name not in programs:
        raise NotWrittenError
    f = programs[problem.name]
    fixed = tuple(k for k, a in enumerate(args) if isinstance(a, int))
    if problem.derivative is None:
        f = jax.value_and_grad(f, argnums=problem.argnums)
    compiled = jax.jit(f, static_argnums=fixed)
    given = [a if k in fixed else jax.numpy.asarray(a) for k, a in enumerate(args)]
    return lambda: jax.block_until_ready(compiled(*given))


def casadi_call(problem: Problem, args: Sequence[Any]) -> Call:
    """CasADi's version, run by its virtual machine."""
    from benchmarks.reverse_casadi import PROGRAMS

    if problem.name not in PROGRAMS:
        raise NotWrittenError
    return PROGRAMS[problem.name](*args)


def autograd_call(problem: Problem, args: Sequence[Any]) -> Call:
    """The program as it stands, with ``np`` meaning autograd's."""
    import autograd
    import autograd.numpy as anp

    f = _with_globals(problem.f, {"np": anp})
    return bound(autograd.value_and_grad(f, argnum=problem.argnums), args)


def torch_call(problem: Problem, args: Sequence[Any]) -> Call:
    """The program as it stands, with ``np`` meaning torch, which runs it at once."""
    import torch

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    f = _with_globals(problem.f, {"np": torch})
    given = [torch.as_tensor(a) if isinstance(a, np.ndarray) else a for a in args]
    active = [given[k] for k in problem.active]

    def call() -> tuple[Any, Any]:
        for x in active:
            x.requires_grad_()
            x.grad = None
        y = f(*given)
        y.backward()
        found = tuple(x.grad for x in active)
        return y.detach(), found if isinstance(problem.argnums, tuple) else found[0]

    return call


def _with_globals(f: Any, changed: dict[str, Any]) -> Any:
    return types.FunctionType(
        f.__code__, {**f.__globals__, **changed}, f.__name__, f.__defaults__, f.__closure__
    )


def warm(tools: Sequence[str]) -> None:
    """Compile something small, so that a first call is that of the program."""
    if "jax" in tools:
        import jax

        jax.config.update("jax_enable_x64", True)
        jax.block_until_ready(jax.jit(jax.grad(lambda x: x * x))(1.0))
    if "fwdad" in tools:
        import fwdad

        fwdad.jit(fwdad.grad(lambda x: np.sum(x * x)))(np.ones(3))


COMPILED = {"hand": by_hand, "casadi": casadi_call, "jax": jax_call}
INTERPRETED = {"autograd": autograd_call, "torch": torch_call}
