"""fwdad and its peers behind one interface: a row goes in, a call that returns it comes out.

A peer gets the program rewritten for its namespace and its arrays made beforehand; what its call
returns is not converted, so that only its own work is timed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.problems import Problem


class NotApplicableError(Exception):
    """The question makes no sense for this tool; the row shows a dash."""


@dataclass(frozen=True)
class Row:
    """One question: N directional derivatives, or a Jacobian, of one problem."""

    name: str
    problem: Problem
    lanes: int | None = None  # None: the Jacobian

    @property
    def directions(self) -> np.ndarray:
        """The N directions, ``(N, *x.shape)``."""
        rng = np.random.default_rng(self.lanes)
        return rng.normal(size=(self.lanes, *self.problem.x.shape))

    @property
    def seeds(self) -> np.ndarray:
        """The same as a tool is given them: one direction has the shape of x."""
        return self.directions[0] if self.lanes == 1 else self.directions


@dataclass(frozen=True)
class Tool:
    """A way to differentiate."""

    name: str
    title: str
    needs: str | None  # the package that must be importable
    prepare: Callable[[Row], Callable[[], Any]]
    traced: bool = True  # its memory is allocated by Python and NumPy: tracemalloc sees it

    def is_installed(self) -> bool:
        """Whether its package can be imported."""
        if self.needs is None:
            return True
        try:
            importlib.import_module(self.needs)
        except ImportError:
            return False
        return True


def derivative_of(answer: Any, row: Row) -> np.ndarray:
    """Take the derivative out of a tool's result, as ``(N, y.size)`` or as the Jacobian."""
    if row.lanes is None:
        return np.asarray(answer)
    return np.asarray(answer[1]).reshape(row.lanes, -1)


# -- fwdad


def _fwdad(row: Row) -> Callable[[], Any]:
    import fwdad

    f, x = row.problem.function, row.problem.x
    if row.lanes is None:
        return lambda: fwdad.jacobian(f, x)
    v = row.seeds
    return lambda: fwdad.jvp(f, x, v)


# -- SciPy's finite differences


def scipy_differences(row: Row) -> Callable[[], Any]:
    # what least_squares, root and minimize call when they are given no `jac`
    from scipy.optimize._numdiff import approx_derivative

    f, x = row.problem.function, row.problem.x
    if row.lanes is None:
        return lambda: approx_derivative(f, x, method="2-point")
    v, zero = row.directions, np.zeros(row.lanes)

    def directional() -> Any:
        along = approx_derivative(
            lambda s: f(x + np.tensordot(s, v, 1)), zero, method="2-point", abs_step=1e-8
        )
        return None, along.reshape(-1, row.lanes).T

    return directional


# -- autograd


def _autograd_forward(row: Row) -> Callable[[], Any]:
    import autograd.numpy
    from autograd import make_jvp

    f, x = row.problem.rewrite(autograd.numpy), row.problem.x
    basis = np.eye(x.size).reshape(x.size, *x.shape) if row.lanes is None else row.directions

    def one_by_one() -> Any:  # autograd's forward mode has no lanes
        jvp = make_jvp(f)(x)
        pairs = [jvp(v) for v in basis]
        return pairs[0][0], np.stack([y_dot for _, y_dot in pairs])

    if row.lanes is None:
        return lambda: np.moveaxis(one_by_one()[1], 0, -1)
    return one_by_one


def _autograd_reverse(row: Row) -> Callable[[], Any]:
    if row.lanes is not None:
        raise NotApplicableError
    import autograd.numpy
    from autograd import jacobian

    f, x = row.problem.rewrite(autograd.numpy), row.problem.x
    jac = jacobian(f)
    return lambda: jac(x)


# -- JAX


def _jax(row: Row, *, jitted: bool) -> Callable[[], Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    f, x = row.problem.rewrite(jax.numpy), jax.numpy.asarray(row.problem.x)
    if row.lanes is None:
        jac = jax.jacfwd(f)
        jac = jax.jit(jac) if jitted else jac
        return lambda: jax.block_until_ready(jac(x))

    def one(x: Any, v: Any) -> Any:  # x is an argument: XLA would fold a constant away
        return jax.jvp(f, (x,), (v,))

    push = one if row.lanes == 1 else jax.vmap(one, in_axes=(None, 0), out_axes=(None, 0))
    push = jax.jit(push) if jitted else push
    v = jax.numpy.asarray(row.seeds)
    return lambda: jax.block_until_ready(push(x, v))


# -- PyTorch


def _torch(row: Row) -> Callable[[], Any]:
    import torch

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    namespace = TorchNamespace(torch)
    f, x = row.problem.rewrite(namespace), torch.as_tensor(row.problem.x)
    if row.lanes is None:
        jac = torch.func.jacfwd(f)
        return lambda: jac(x)

    def one(v: Any) -> Any:
        return torch.func.jvp(f, (x,), (v,))

    push = one if row.lanes == 1 else torch.func.vmap(one, out_dims=(None, 0))
    v = torch.as_tensor(row.seeds)
    return lambda: push(v)


class TorchNamespace:
    """``torch`` under NumPy's names, where they differ."""

    def __init__(self, torch: Any) -> None:
        # as attributes: what torch.compile guards cannot go through __getattr__
        self.__dict__.update(vars(torch))
        self.array = torch.stack


TOOLS = {
    tool.name: tool
    for tool in (
        Tool("fwdad", "fwdad", None, _fwdad),
        Tool("scipy", "SciPy 2-point", None, scipy_differences),
        Tool("autograd", "autograd forward", "autograd", _autograd_forward),
        Tool("autograd-reverse", "autograd reverse", "autograd", _autograd_reverse),
        Tool("jax", "JAX eager", "jax", lambda row: _jax(row, jitted=False), traced=False),
        Tool("jax-jit", "JAX jit", "jax", lambda row: _jax(row, jitted=True), traced=False),
        Tool("torch", "torch.func", "torch", _torch, traced=False),
    )
}
