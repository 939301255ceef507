"""The rules, one file per area; importing this package registers them all."""

from fwdad.rules import arithmetic as arithmetic
from fwdad.rules import comparisons as comparisons
from fwdad.rules import complex_parts as complex_parts
from fwdad.rules import einsum as einsum
from fwdad.rules import elementary as elementary
from fwdad.rules import math_module as math_module
from fwdad.rules import products as products
from fwdad.rules import random as random
from fwdad.rules import special as special
from fwdad.rules import special_families as special_families
from fwdad.rules import transposes as transposes
