"""Which functions may be called on samples: those that read only their arguments and write nothing.

Every other function that a program calls is traced from its source, or runs on the values that it
is given.
"""

from __future__ import annotations

import enum
import sys
import types
from typing import Any

import numpy as np

from fwdad.errors import PACKAGE
from fwdad.ir.ops import Missing, Operand, Value
from fwdad.rules.core.registry import find_rule, function_name, is_declared_pure

# Closed lists, by module; those with a rule of the library's own need no entry. No function here
# calls one that it is given, keeps what it is given, or reads or writes beyond its arguments, and
# none hands lengths on to compiled code that trusts them.
_NAMES: dict[str, str] = {
    "builtins": "abs bool complex divmod float int len max min pow round sum",
    "operator": """
        abs add and_ concat contains countOf eq floordiv ge getitem gt index indexOf inv invert is_
        is_not le lshift lt matmul mod mul ne neg not_ or_ pos pow rshift sub truediv truth xor
    """,
    "numpy": """
        append arange array array_split asanyarray asarray asarray_chkfinite ascontiguousarray
        asfortranarray astype atleast_1d atleast_2d atleast_3d average bartlett blackman block
        broadcast_shapes copy corrcoef cov cumulative_prod cumulative_sum delete diag_indices
        diag_indices_from diagflat diff dsplit ediff1d empty extract eye fliplr flipud full
        geomspace gradient hamming hanning
        histogram histogram2d histogram_bin_edges histogramdd hsplit
        identity in1d indices insert intersect1d isfortran isin ix_ kaiser linspace logspace
        matrix_transpose nanmedian nanpercentile nanquantile ones packbits pad percentile piecewise
        poly polyadd polyder polydiv polyfit polyint polymul polysub polyval promote_types quantile
        ravel_multi_index require resize rollaxis roots rot90 row_stack setdiff1d setxor1d split
        trapezoid trapz tri tril_indices tril_indices_from trim_zeros triu_indices
        triu_indices_from union1d unique_all unique_counts unique_inverse unique_values unpackbits
        unravel_index unstack vander vsplit zeros
    """,
    "numpy.fft": "fftfreq rfftfreq",
    "numpy.linalg": "multi_dot",
    "numpy.lib.array_utils": "normalize_axis_index normalize_axis_tuple",
    "numpy.lib.stride_tricks": "sliding_window_view",
    "numpy.lib.scimath": "arccos arcsin arctanh log log10 log2 logn power sqrt",
    "numpy.polynomial.polynomial": """
        polyadd polycompanion polyder polydiv polyfit polyfromroots polygrid2d polygrid3d polyint
        polymul polymulx polypow polyroots polysub polyval polyval2d polyval3d polyvander
    """,
    "numpy.polynomial.chebyshev": """
        cheb2poly chebadd chebcompanion chebder chebdiv chebfit chebfromroots chebgauss chebint
        chebmul chebmulx chebpow chebroots chebsub chebval chebvander chebweight poly2cheb
    """,
    "numpy.polynomial.legendre": """
        leg2poly legadd legder legdiv legfit legfromroots leggauss legint legmul legmulx legpow
        legroots legsub legval legvander poly2leg
    """,
    "numpy.polynomial.hermite": "hermadd hermder hermgauss hermint hermmul hermsub hermval",
    "numpy.polynomial.hermite_e": "hermeadd hermeder hermegauss hermeint hermemul hermeval",
    "numpy.polynomial.laguerre": "lagadd lagder laggauss lagint lagmul lagsub lagval",
    "scipy.special": """
        assoc_laguerre assoc_legendre_p comb diric ellip_normal factorial factorial2 factorialk
        h1vp h2vp ivp jvp kvp legendre_p perm roots_chebyt roots_chebyu roots_gegenbauer
        roots_genlaguerre roots_hermite roots_hermitenorm roots_jacobi roots_laguerre
        roots_legendre sph_harm_y sph_legendre_p stirling2 yvp
    """,
    "scipy.linalg": """
        block_diag cho_solve_banded cholesky_banded circulant companion convolution_matrix coshm
        cosm dft eig_banded eigh_tridiagonal eigvals eigvals_banded eigvalsh eigvalsh_tridiagonal
        expm_frechet fiedler hankel helmert hessenberg hilbert khatri_rao kron leslie
        matmul_toeplitz orthogonal_procrustes pascal polar qz rq schur sinhm sinm solve_circulant
        solve_continuous_are solve_continuous_lyapunov solve_discrete_are solve_discrete_lyapunov
        solve_toeplitz subspace_angles tanhm tanm toeplitz
    """,
    "scipy.fft": "fftfreq fftshift fht ifftshift ifht next_fast_len prev_fast_len rfftfreq",
    "scipy.signal": """
        chirp coherence convolve convolve2d correlate correlate2d csd decimate deconvolve detrend
        fftconvolve filtfilt freqs freqz gausspulse get_window hilbert lfilter lfilter_zi
        oaconvolve periodogram resample resample_poly savgol_coeffs savgol_filter sawtooth
        sosfilt sosfilt_zi sosfiltfilt spectrogram square stft istft upfirdn welch wiener
    """,
    # the result types of these follow from shapes: C code that trusts lengths is not tried
    "scipy.ndimage": """
        affine_transform black_tophat gaussian_filter gaussian_filter1d gaussian_gradient_magnitude
        gaussian_laplace grey_closing grey_dilation grey_erosion grey_opening laplace
        map_coordinates maximum_filter maximum_filter1d median_filter minimum_filter
        minimum_filter1d morphological_gradient morphological_laplace percentile_filter prewitt
        rank_filter rotate shift sobel spline_filter spline_filter1d uniform_filter white_tophat
        zoom
    """,
    "scipy.integrate": "cumulative_simpson cumulative_trapezoid romb simpson trapezoid",
    "scipy.spatial.distance": """
        braycurtis canberra chebyshev cityblock correlation cosine dice euclidean hamming jaccard
        jensenshannon mahalanobis minkowski rogerstanimoto russellrao seuclidean sqeuclidean
        squareform yule
    """,
    "scipy.stats": """
        circmean circstd circvar entropy expectile gmean gstd gzscore hmean iqr kstat kstatvar
        kurtosis median_abs_deviation moment pmean rankdata scoreatpercentile sem skew tmax tmean
        tmin trim_mean tsem tstd tvar variation zmap zscore
    """,
    "scipy.optimize": "nnls",
    "fwdad.evaluation.evaluators": "stop_gradient",
    "fwdad.tangents.adjugate": "cofactors",
    "fwdad.tangents.scaling": "scale_lanes",
    "fwdad.ir.builder.index_parts": "sample_index",
    "fwdad.ir.primitives.ranges": "range_length",
}  # fmt: skip
_MODULES_OF: dict[str, list[str]] = {}
for _module, _text in _NAMES.items():
    for _name in _text.split():
        _MODULES_OF.setdefault(_name, []).append(_module)

_OF_NUMBERS = "all any argmax argmin astype choose clip compress conj conjugate copy cumprod"
_METHODS = {
    np.ndarray: f"""
        {_OF_NUMBERS} argpartition argsort byteswap cumsum diagonal dot flatten item max mean min
        nonzero prod ravel repeat reshape round searchsorted squeeze std sum swapaxes take tolist
        trace transpose var
    """.split(),
    np.generic: [*_OF_NUMBERS.split(), "item", "round", "sum"],
    float: ["as_integer_ratio", "conjugate", "is_integer"],
    int: ["as_integer_ratio", "bit_count", "bit_length", "conjugate", "is_integer"],
    complex: ["conjugate"],
}
_PURE_METHODS = {
    getattr(cls, name) for cls, names in _METHODS.items() for name in names if hasattr(cls, name)
}

_UFUNCS_OF_SCIPY = ("scipy.special", "scipy.special._ufuncs", "scipy.special._special_ufuncs")
_UFUNC_METHODS = {"accumulate", "outer", "reduce", "reduceat"}

# Operands on which no method of the user's is called.
_PLAIN = (
    type(None), bool, int, float, complex, str, bytes, np.generic, np.dtype, type, range,
    types.EllipsisType, types.GenericAlias, enum.Enum, Missing, Value,
)  # fmt: skip
_LIBRARIES = {"fwdad", "numpy", "scipy"}
FACTORS = {"SuperLU"}
"""Classes of objects that are constants to whoever is given one."""


def is_pure(function: Any) -> bool:
    """Whether a function is listed as reading only its arguments and writing nothing."""
    if isinstance(function, np.ufunc):
        return _is_pure_ufunc(function)
    if isinstance(function, type) and issubclass(function, np.generic):
        return True
    if _has_own_rule(function) or is_declared_pure(function) or _is_listed(function):
        return True
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ufunc):
        return function.__name__ in _UFUNC_METHODS and _is_pure_ufunc(owner)
    return isinstance(function, types.MethodDescriptorType) and function in _PURE_METHODS


def _has_own_rule(function: Any) -> bool:
    """Whether the library itself has registered a rule: a user's says nothing about effects."""
    rule = find_rule(function)
    if rule is None or not rule.origin.startswith(PACKAGE):
        return False
    return not function_name(function).startswith("numpy.random")


def _is_pure_ufunc(function: np.ufunc) -> bool:
    """Whether a ufunc is NumPy's or SciPy's; any other may wrap arbitrary Python code."""
    name = function.__name__
    if getattr(np, name, None) is function or _has_own_rule(function):
        return True
    homes = (sys.modules.get(home) for home in _UFUNCS_OF_SCIPY)
    return any(getattr(home, name, None) is function for home in homes)


def _is_listed(function: Any) -> bool:
    module, name = getattr(function, "__module__", None), getattr(function, "__name__", None)
    if not isinstance(name, str):
        return False
    if module in ("math", "cmath"):
        return getattr(sys.modules[module], name, None) is function
    homes = _MODULES_OF.get(name, ())
    return any(getattr(sys.modules.get(home), name, None) is function for home in homes)


def are_plain(operands: Operand) -> bool:
    """Whether no function can reach user code through these operands."""
    if isinstance(operands, _PLAIN) or type(operands) is np.ndarray:
        return True
    if isinstance(operands, (list, tuple, set, frozenset)):
        return all(map(are_plain, operands))
    if isinstance(operands, dict):
        return all(map(are_plain, operands.values()))
    if isinstance(operands, slice):
        return are_plain((operands.start, operands.stop, operands.step))
    if callable(operands):
        return is_pure(operands)
    if type(operands).__name__ in FACTORS:
        return True
    return type(operands).__module__.partition(".")[0] in _LIBRARIES


def leaves_arguments(function: Any, operands: Operand) -> bool:
    """Whether a call with ``(args, kwargs)`` writes into none of its arguments."""
    _, kwargs = operands
    overwrites = any(key.startswith("overwrite") and x is not False for key, x in kwargs.items())
    return is_pure(function) and are_plain(operands) and not overwrites
