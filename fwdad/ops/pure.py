"""Functions that read only their arguments and write nothing, so that samples may be tried."""

from __future__ import annotations

import builtins
import cmath
import math
import operator
import types

import numpy as np

from fwdad.ops.record import also, named

# Closed lists, by module; those with a rule of the library's own need no entry, unless they are
# SciPy's internal code. No function here calls one that it is given, keeps what it is given, or
# reads or writes beyond its arguments, and none hands lengths on to compiled code that trusts them.
NAMES: dict[str, str] = {
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
    "scipy.interpolate._interpnd": "_ndim_coords_from_arrays",
    "scipy.interpolate._ppoly": "evaluate fix_continuity integrate",
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
    "scipy.signal._peak_finding_utils": "_local_maxima_1d",
    "scipy.signal._sigtools": "_convolve2d",
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
    "scipy.stats._stats": "von_mises_cdf",
    "scipy.stats": """
        circmean circstd circvar entropy expectile gmean gstd gzscore hmean iqr kstat kstatvar
        kurtosis median_abs_deviation moment pmean rankdata scoreatpercentile sem skew tmax tmean
        tmin trim_mean tsem tstd tvar variation zmap zscore
    """,
    "scipy.optimize": "nnls",
}  # fmt: skip
_IMPORTED: dict[str, types.ModuleType] = {
    "builtins": builtins,
    "operator": operator,
    "numpy": np,
    "numpy.lib.scimath": np.lib.scimath,
}

for _module, _text in NAMES.items():
    _home = _IMPORTED.get(_module)
    if _home is None:
        named(_module, _text, pure=True)
    else:
        also(*(getattr(_home, name) for name in _text.split() if hasattr(_home, name)), pure=True)
for _home in (math, cmath):
    _functions = (f for f in vars(_home).values() if isinstance(f, types.BuiltinFunctionType))
    also(*_functions, pure=True)
also(np.linalg.multi_dot, np.lib.stride_tricks.sliding_window_view, pure=True)

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
for _cls, _listed in _METHODS.items():
    also(*(getattr(_cls, name) for name in _listed if hasattr(_cls, name)), pure=True)
