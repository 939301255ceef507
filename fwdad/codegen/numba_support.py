"""Whether Numba is available, and its options; everything that needs Numba asks here first."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
from types import ModuleType

import numpy as np

from fwdad.errors import Location


@functools.cache
def have_numba() -> bool:
    """Whether Numba can be imported (it is the extra ``fwdad[jit]``)."""
    return importlib.util.find_spec("numba") is not None


CHECK_BOUNDS = os.environ.get("FWDAD_CHECK_BOUNDS", "") not in ("", "0")
"""Whether compiled code also checks what is known to be inside of an array or a stack, and raises
where it is not: a mode for tests. Stacks have room for what is asked for then and hardly more, and
when one grows, what it leaves is overwritten."""

_ARITHMETIC = frozenset({
    "address_of", "ahead", "broadcast_length", "by_rows", "check_length", "check_shape",
    "check_stack", "complex_divide", "complex_power", "computed", "contiguous", "default_snapshots",
    "disjoint", "divide", "equal_length", "float_floor_divide",
    "float_power", "float_remainder", "growing", "grown", "in_domain", "in_range", "int_add",
    "int_floor_divide", "int_fmod", "int_mul", "int_power", "int_remainder", "int_sub",
    "int_within", "is_odd", "larger", "leaf_of_numbers", "left_shift", "loose", "math_power",
    "most_of_unknown", "next_snapshot", "next_stop", "numpy_int_power", "place",
    "part_inside", "part_of_stack", "places_beside", "python_floor_divide", "python_int_divide",
    "python_int_remainder", "python_remainder", "right_shift", "room_for", "scaled",
    "scaled_complex", "scaled_in_vectors", "smaller", "snapshots_in", "stack_place", "summed",
    "thinned", "thinned_numbers", "to_int", "trips",
})  # fmt: skip
_LAPACK = frozenset({
    "cofactors", "eigh_upper", "lapack_cholesky", "lapack_det", "lapack_eigh", "lapack_eigvalsh",
    "lapack_inv", "lapack_lstsq", "lapack_pinv", "lapack_qr", "lapack_qr_r", "lapack_slogdet",
    "lapack_svd", "lapack_svdvals", "lu_factor", "lu_solve_matrix", "lu_solve_vector",
    "matrix_power",
})  # fmt: skip
_FOURIER = frozenset({"fourier_fft", "fourier_ifft", "fourier_irfft", "fourier_rfft"})
_LOOKUPS = frozenset({
    "bin_of", "check_table", "convolved", "direction", "distinct", "interpolate", "part_of_full",
    "search",
})  # fmt: skip
SPECIAL_HELPERS = frozenset(f"special_{name}" for name in (
    "agm", "bdtr", "bdtrc", "bdtri", "bdtrik", "bdtrin", "bei", "beip", "ber", "berp",
    "besselpoly", "beta", "betainc", "betaincc", "betainccinv", "betaincinv", "betaln", "binom",
    "boxcox", "boxcox1p", "btdtria", "btdtrib", "cbrt", "chdtr", "chdtrc", "chdtri", "chdtriv",
    "chndtr", "chndtridf", "chndtrinc", "chndtrix", "cosdg", "cosm1", "cotdg", "dawsn",
    "ellipe", "ellipeinc", "ellipk", "ellipkinc", "ellipkm1", "elliprc", "elliprd", "elliprf",
    "elliprg", "elliprj", "entr", "erf", "erfc", "erfcinv", "erfcx", "erfi", "erfinv",
    "eval_chebyc", "eval_chebys", "eval_chebyt", "eval_chebyu", "eval_gegenbauer",
    "eval_genlaguerre", "eval_jacobi", "eval_laguerre", "eval_legendre", "eval_sh_chebyt",
    "eval_sh_chebyu", "eval_sh_jacobi", "eval_sh_legendre", "exp1", "exp10", "exp2", "expi",
    "expit", "expm1", "expn", "exprel", "fdtr", "fdtrc", "fdtri", "fdtridfd", "gamma",
    "gammainc", "gammaincc", "gammainccinv", "gammaincinv", "gammaln", "gammasgn", "gdtr",
    "gdtrc", "gdtria", "gdtrib", "gdtrix", "huber", "hyp0f1", "hyp1f1", "hyp2f1", "hyperu",
    "i0", "i0e", "i1", "i1e", "inv_boxcox", "inv_boxcox1p", "it2struve0", "itmodstruve0",
    "itstruve0", "iv", "ive", "j0", "j1", "jv", "jve", "k0", "k0e", "k1", "k1e", "kei", "keip",
    "ker", "kerp", "kl_div", "kn", "kolmogi", "kolmogorov", "kv", "kve", "log1p", "log_expit",
    "log_ndtr", "log_wright_bessel", "loggamma", "logit", "lpmv", "mathieu_a", "mathieu_b",
    "modstruve", "nbdtr", "nbdtrc", "nbdtri", "nbdtrik", "nbdtrin", "ncfdtr", "ncfdtri",
    "ncfdtridfd", "ncfdtridfn", "ncfdtrinc", "nctdtr", "nctdtridf", "nctdtrinc", "nctdtrit",
    "ndtr", "ndtri", "ndtri_exp", "nrdtrimn", "nrdtrisd", "obl_cv", "owens_t", "pdtr", "pdtrc",
    "pdtri", "pdtrik", "poch", "powm1", "pro_cv", "pseudo_huber", "psi", "radian", "rel_entr",
    "rgamma", "round", "sindg", "smirnov", "smirnovi", "spence", "stdtr", "stdtridf", "stdtrit",
    "struve", "tandg", "tklmbda", "voigt_profile", "wright_bessel", "wrightomega", "xlog1py",
    "xlogy", "y0", "y1", "yn", "yv", "yve", "zetac",
))  # fmt: skip
"""Ufuncs of ``scipy.special`` with a C function of float64s."""
UFUNC_PREFIX = "ufunc_"


def _has_complex_loops(ufunc: object) -> bool:
    if not isinstance(ufunc, np.ufunc):
        return False
    return all(f"{letter * ufunc.nin}->{letter}" in ufunc.types for letter in "FD")


UFUNC_HELPERS = frozenset(
    f"{UFUNC_PREFIX}{name}" for name in np.__all__ if _has_complex_loops(getattr(np, name))
)
"""NumPy's ufuncs from complex numbers to complex numbers."""
HELPERS = {
    helper: module
    for module, helpers in (
        ("arithmetic", _ARITHMETIC), ("fourier", _FOURIER), ("lapack", _LAPACK),
        ("lookups", _LOOKUPS), ("special_functions", SPECIAL_HELPERS),
        ("ufunc_loops", UFUNC_HELPERS),
    )
    for helper in helpers
}  # fmt: skip
"""What generated code may call at run time: the module of ``codegen.runtime`` that has it."""


def runtime_module(helper: str) -> ModuleType:
    """The module that a helper is in; it needs Numba."""
    return importlib.import_module(f"fwdad.codegen.runtime.{HELPERS[helper]}")


class CannotCompileError(Exception):
    """A program holds something that the Numba source cannot express.

    ``what`` names the operation; ``location`` is the user's line, or None if unknown.
    """

    def __init__(self, what: str, location: Location | None = None) -> None:
        where = f" ({location.filename}:{location.line})" if location is not None else ""
        super().__init__(f"{what}{where}")
        self.what = what
        self.location = location
