"""Differentiate the NumPy program that you already have, N tangents at a time."""

# importing the rules and the laws registers them, importing `pages` speaks to malloc
from fwdad import errors as errors
from fwdad import reversible as reversible
from fwdad import rules as rules
from fwdad.api.check_grads import check_grads
from fwdad.api.checkpoint import checkpoint
from fwdad.api.explain import explain
from fwdad.api.jit import cache_info, jit, show
from fwdad.api.memory_report import memory_report
from fwdad.api.support import Support, supported
from fwdad.api.transforms import grad, hessian, hvp, jacfwd, jacrev, value_and_grad
from fwdad.drivers import implicit_roots as implicit_roots
from fwdad.drivers.jacobian import jacobian, value_and_jacobian
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
from fwdad.tangents.chunk import Chunk, map_lanes
from fwdad.tangents.fields import constant_fields
from fwdad.tangents.registry import register_tangent_type, tangent_type, typeof
from fwdad.tangents.vectors import add_tangents, inner_product, scale_tangent, zero_tangent
from fwdad.tangents.zero import ZERO, NoTangent, undefined

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
    "explain",
    "frule",
    "grad",
    "hessian",
    "hvp",
    "inner_product",
    "jacfwd",
    "jacobian",
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
    "stop_gradient",
    "supported",
    "tangent_type",
    "trace",
    "transpose",
    "tree_map",
    "typeof",
    "undefined",
    "value_and_grad",
    "value_and_jacobian",
    "vjp",
    "zero_tangent",
]
