"""Differentiate the NumPy program that you already have, N tangents at a time."""

import importlib
import typing

# importing the rules and the laws registers them, importing `pages` speaks to malloc
from fwdad import errors as errors
from fwdad import reversible as reversible
from fwdad import rules as rules
from fwdad.api.check_grads import check_grads
from fwdad.api.checkpoint import checkpoint
from fwdad.api.explain import explain
from fwdad.api.jit import cache_info, jit, show
from fwdad.api.memory_report import memory_report
from fwdad.api.neighbours import spelling as _spelling
from fwdad.api.second_derivatives import hessian, hvp
from fwdad.api.sparsity import hessian_sparsity, jacobian_sparsity, spy
from fwdad.api.support import Support, supported
from fwdad.api.transforms import grad, jacfwd, jacrev, value_and_grad
from fwdad.api.vmap import vmap
from fwdad.drivers import implicit_roots as implicit_roots
from fwdad.drivers import initial_values as initial_values
from fwdad.drivers import integrals as integrals
from fwdad.drivers import tapes_on_duals as tapes_on_duals
from fwdad.drivers.jacobian import jacobian, value_and_jacobian
from fwdad.drivers.jacobian_blocks import jacobian_blocks
from fwdad.drivers.linearize import linearize
from fwdad.drivers.pullback import vjp
from fwdad.eager.build import build_frule, call_rule
from fwdad.eager_reverse.define import rrule
from fwdad.evaluation.evaluators import derivative, jvp, stop_gradient
from fwdad.evaluation.trees import ravel, tree_map
from fwdad.frontend.syntax.loops import TraceWarning
from fwdad.frontend.tape import Tape
from fwdad.frontend.trace import trace
from fwdad.rules.core.adjoints import Space, transpose
from fwdad.rules.core.define import (
    elementwise,
    frule,
    linear,
    locally_constant,
    multilinear,
)
from fwdad.rules.core.partials import no_derivative
from fwdad.rules.core.registry import pure
from fwdad.tangents import laws as laws
from fwdad.tangents import pages as pages
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.fields import constant_fields
from fwdad.tangents.lane_by_lane import map_lanes
from fwdad.tangents.registry import register_tangent_type, tangent_type, typeof
from fwdad.tangents.vectors import add_tangents, inner_product, scale_tangent, zero_tangent
from fwdad.tangents.zero import ZERO, NoTangent, undefined

if typing.TYPE_CHECKING:
    from fwdad import compat as compat
    from fwdad import examples as examples
    from fwdad import scipy as scipy
    from fwdad import testing as testing

    __version__: str

__all__ = [
    "ZERO",
    "Chunk",
    "NoTangent",
    "Space",
    "Support",
    "Tape",
    "TraceWarning",
    "add_tangents",
    "build_frule",
    "cache_info",
    "call_rule",
    "check_grads",
    "checkpoint",
    "constant_fields",
    "derivative",
    "elementwise",
    "errors",
    "examples",
    "explain",
    "frule",
    "grad",
    "hessian",
    "hessian_sparsity",
    "hvp",
    "inner_product",
    "jacfwd",
    "jacobian",
    "jacobian_blocks",
    "jacobian_sparsity",
    "jacrev",
    "jit",
    "jvp",
    "linear",
    "linearize",
    "locally_constant",
    "map_lanes",
    "memory_report",
    "multilinear",
    "no_derivative",
    "pure",
    "ravel",
    "register_tangent_type",
    "reversible",
    "rrule",
    "scale_tangent",
    "show",
    "spy",
    "stop_gradient",
    "supported",
    "tangent_type",
    "testing",
    "trace",
    "transpose",
    "tree_map",
    "typeof",
    "undefined",
    "value_and_grad",
    "value_and_jacobian",
    "vjp",
    "vmap",
    "zero_tangent",
]

_WHEN_ASKED_FOR = ("compat", "examples", "scipy", "testing")

if not typing.TYPE_CHECKING:  # a type checker would take every name for one that is there

    def __getattr__(name: str) -> object:
        if name == "__version__":
            return importlib.import_module("fwdad.core.version").version()
        if name in _WHEN_ASKED_FOR:
            return importlib.import_module(f"fwdad.{name}")
        message = f"module 'fwdad' has no attribute {name!r}"
        instead = _spelling(name, (errors, reversible))
        if instead is None:
            raise AttributeError(message, name=name, obj=importlib.import_module("fwdad"))
        raise AttributeError(f"{message}: {instead}")


def __dir__() -> list[str]:
    own = ("__all__", "__doc__", "__file__", "__name__", "__version__")
    return sorted({*__all__, *_WHEN_ASKED_FOR, *own})
