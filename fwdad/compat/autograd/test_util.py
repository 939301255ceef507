"""``autograd.test_util``: derivatives beside finite differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fwdad.api.transforms import Transformed
from fwdad.drivers.pullback import vjp
from fwdad.errors import type_in_words
from fwdad.evaluation.arguments import Argnums, Function, positions_of
from fwdad.evaluation.evaluators import jvp
from fwdad.tangents.vectors import add_tangents, inner_product, scale_tangent

_TOLERANCE = 1e-6  # autograd's, absolute or relative
_STEP = 1e-6
