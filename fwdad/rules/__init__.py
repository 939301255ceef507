"""The rules, one file per area; importing this package registers them all."""

from fwdad.rules import arithmetic as arithmetic
from fwdad.rules import comparisons as comparisons
from fwdad.rules import complex_parts as complex_parts
from fwdad.rules import cosine as cosine
from fwdad.rules import cumulative as cumulative
from fwdad.rules import decompositions as decompositions
from fwdad.rules import einsum as einsum
from fwdad.rules import elementary as elementary
from fwdad.rules import fft as fft
from fwdad.rules import filters as filters
from fwdad.rules import gathering as gathering
from fwdad.rules import linear_systems as linear_systems
from fwdad.rules import math_module as math_module
from fwdad.rules import nan_reductions as nan_reductions
from fwdad.rules import norms as norms
from fwdad.rules import products as products
from fwdad.rules import random as random
from fwdad.rules import reductions as reductions
from fwdad.rules import shaping as shaping
from fwdad.rules import sorting as sorting
from fwdad.rules import sparse as sparse
from fwdad.rules import special as special
from fwdad.rules import special_families as special_families
from fwdad.rules import structure as structure
from fwdad.rules import transposes as transposes
from fwdad.rules import ufunc_methods as ufunc_methods
