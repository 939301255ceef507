"""Differentiate the NumPy program that you already have, N tangents at a time."""

from fwdad import errors, rules
from fwdad.api import (
    derivative,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jvp,
    linearize,
    stop_gradient,
    value_and_grad,
    value_and_jacobian,
)
from fwdad.builder.build import build_frule
from fwdad.errors import *  # noqa: F403
from fwdad.rules.define import (
    Space,
    call_rule,
    elementwise,
    frule,
    linear,
    locally_constant,
    multilinear,
    no_derivative,
    transpose,
)
from fwdad.support import Support, supported
from fwdad.tangents import laws
from fwdad.tangents.chunk import Chunk, map_lanes
from fwdad.tangents.registry import register_tangent_type, tangent_type, typeof
from fwdad.tangents.vectors import add_tangents, inner_product, scale_tangent, zero_tangent
from fwdad.tangents.zero import ZERO, NoTangent, undefined
