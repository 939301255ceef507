"""SciPy's own functions: statistics, signals, integrals, interpolation, roots and the like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import integrate, interpolate, linalg, ndimage, optimize, signal, spatial, stats

from tests.packages.package_function import PackageFunction

X = np.array([0.3, 1.2, 0.7, 2.1, 1.5, 0.9])
P = np.array([0.7, 1.3])
T = np.linspace(0, 1, 6)
Q = np.array([0.15, 0.55, 0.8])
B, A = signal.butter(2, 0.3)


def _predators(_, y, p):
    return np.array([p[0] * y[0] - y[0] * y[1], p[1] * y[0] * y[1] - y[1]])


def _solved(method: str) -> Callable[[Any], Any]:
    def f(p):
        options = {"method": method, "rtol": 1e-8, "atol": 1e-8}
        return integrate.solve_ivp(_predators, (0, 1), [1.0, 0.5], args=(p,), **options).y[:, -1]

    return f


DISTRIBUTIONS = {
    "stats.norm.pdf": lambda p: stats.norm.pdf(X, p[0], p[1]),
    "stats.norm.logpdf": lambda p: stats.norm.logpdf(X, p[0], p[1]),
    "stats.norm.cdf": lambda p: stats.norm.cdf(X, p[0], p[1]),
    "stats.norm.ppf": lambda p: stats.norm.ppf(X / 3, p[0], p[1]),
    "stats.gamma.logpdf": lambda p: stats.gamma.logpdf(X, p[0], scale=p[1]),
    "stats.beta.pdf": lambda p: stats.beta.pdf(X / 3, p[0], p[1]),
    "stats.t.logpdf": lambda p: stats.t.logpdf(X, p[0] + 3, scale=p[1]),
    "stats.expon.sf": lambda p: stats.expon.sf(X, scale=p[0]),
    "stats.weibull_min.pdf": lambda p: stats.weibull_min.pdf(X, p[0], scale=p[1]),
    "stats.lognorm.logpdf": lambda p: stats.lognorm.logpdf(X, p[0], scale=p[1]),
    "stats.poisson.logpmf": lambda p: stats.poisson.logpmf(np.arange(4), p[0]),
    "stats.binom.logpmf": lambda p: stats.binom.logpmf(np.arange(4), 5, p[0] / 2),
    "stats.uniform.cdf": lambda p: stats.uniform.cdf(X, p[0] - 1, p[1] + 3),
    "stats.logistic.pdf": lambda p: stats.logistic.pdf(X, p[0], p[1]),
    "stats.cauchy.logpdf": lambda p: stats.cauchy.logpdf(X, p[0], p[1]),
    "stats.frozen norm.logpdf": lambda p: stats.norm(p[0], p[1]).logpdf(X),
    "stats.norm.entropy": lambda p: stats.norm.entropy(p[0], p[1]),
    "stats.multivariate_normal.logpdf": lambda p: stats.multivariate_normal.logpdf(
        X[:2], p, np.array([[2.0, 0.3], [0.3, 1.0]])
    ),
    "stats.mvn.logpdf of cov": lambda p: stats.multivariate_normal.logpdf(
        X[:2], P, np.array([[2.0, 0.3], [0.3, 1.0]]) * p[0]
    ),
    "stats.dirichlet.logpdf": lambda p: stats.dirichlet.logpdf(np.array([0.3, 0.7]), p),
    "stats.vonmises.pdf": lambda p: stats.vonmises.pdf(X, p[0]),
    "stats.pareto.pdf": lambda p: stats.pareto.pdf(X + 1, p[0]),
    "stats.rayleigh.logpdf": lambda p: stats.rayleigh.logpdf(X, scale=p[0]),
    "stats.chi2.cdf": lambda p: stats.chi2.cdf(X * p[0], 3),
    "stats.gaussian_kde": lambda p: stats.gaussian_kde(X)(p),
    "stats.norm.nnlf": lambda p: stats.norm.nnlf((p[0], p[1]), X),
}
STATISTICS = {
    "stats.zscore": lambda x: stats.zscore(x),
    "stats.skew": lambda x: stats.skew(x),
    "stats.kurtosis": lambda x: stats.kurtosis(x),
    "stats.pearsonr": lambda x: stats.pearsonr(x, T).statistic,
    "stats.linregress": lambda x: stats.linregress(T, x).slope,
    "stats.gmean": lambda x: stats.gmean(x),
    "stats.hmean": lambda x: stats.hmean(x),
    "stats.pmean": lambda x: stats.pmean(x, 2.5),
    "stats.trim_mean": lambda x: stats.trim_mean(x, 0.2),
    "stats.tmean": lambda x: stats.tmean(x),
    "stats.tvar": lambda x: stats.tvar(x),
    "stats.tstd": lambda x: stats.tstd(x),
    "stats.sem": lambda x: stats.sem(x),
    "stats.variation": lambda x: stats.variation(x),
    "stats.moment": lambda x: stats.moment(x, 3),
    "stats.describe": lambda x: stats.describe(x).variance,
    "stats.iqr": lambda x: stats.iqr(x),
    "stats.entropy": lambda x: stats.entropy(x),
    "stats.boxcox_llf": lambda x: stats.boxcox_llf(0.5, x),
    "stats.boxcox": lambda x: stats.boxcox(x, 0.4),
    "stats.yeojohnson": lambda x: stats.yeojohnson(x, 0.4),
    "stats.ttest_ind": lambda x: stats.ttest_ind(x, T).statistic,
    "stats.ttest_1samp": lambda x: stats.ttest_1samp(x, 0.5).statistic,
    "stats.ttest_1samp interval": lambda x: stats.ttest_1samp(x, 0.5).confidence_interval().low,
    "stats.ttest_ind df": lambda x: stats.ttest_ind(x, T**2).df * x[0],
    "stats.f_oneway": lambda x: stats.f_oneway(x, T).statistic,
    "stats.spearman": lambda x: stats.spearmanr(x, T).statistic * x[0],
    "stats.wasserstein": lambda x: stats.wasserstein_distance(x, T),
    "stats.circmean": lambda x: stats.circmean(x),
    "stats.mode/median_abs": lambda x: stats.median_abs_deviation(x),
    "stats.sigmaclip": lambda x: stats.sigmaclip(x, 2, 2).clipped,
    "stats.gstd": lambda x: stats.gstd(x),
    "stats.theilslopes": lambda x: stats.theilslopes(x, T)[0],
    "stats.rankdata": lambda x: stats.rankdata(x) * x,
    "stats.bootstrap": lambda x: (
        stats.bootstrap((x,), np.mean, n_resamples=20, rng=np.random.default_rng(1)).standard_error
    ),
    "stats.permutation_test": lambda x: (
        stats.permutation_test(
            (x, T), lambda a, b: a.mean() - b.mean(), n_resamples=20, rng=np.random.default_rng(1)
        ).statistic
    ),
}
SIGNALS = {
    "signal.lfilter": lambda x: signal.lfilter(B, A, x),
    "signal.lfilter b": lambda x: signal.lfilter(x[:2], A, T),
    "signal.filtfilt": lambda x: signal.filtfilt(B, A, np.concatenate([x, x[::-1] * 0.5, x])),
    "signal.sosfilt": lambda x: signal.sosfilt(signal.butter(2, 0.3, output="sos"), x),
    "signal.convolve": lambda x: signal.convolve(x, T),
    "signal.fftconvolve": lambda x: signal.fftconvolve(x, T),
    "signal.correlate": lambda x: signal.correlate(x, T),
    "signal.detrend": lambda x: signal.detrend(x),
    "signal.hilbert": lambda x: np.abs(signal.hilbert(x)),
    "signal.resample": lambda x: signal.resample(x, 9),
    "signal.decimate": lambda x: signal.decimate(np.tile(x, 6), 2),
    "signal.savgol": lambda x: signal.savgol_filter(x, 5, 2),
    "signal.periodogram": lambda x: signal.periodogram(x)[1],
    "signal.welch": lambda x: signal.welch(x, nperseg=4)[1],
    "signal.stft": lambda x: np.abs(signal.stft(x, nperseg=4)[2]),
    "signal.spectrogram": lambda x: signal.spectrogram(x, nperseg=4)[2],
    "signal.csd": lambda x: np.abs(signal.csd(x, T, nperseg=4)[1]),
    "signal.coherence": lambda x: signal.coherence(x, T, nperseg=3)[1],
    "signal.freqz": lambda x: np.abs(signal.freqz(x[:2], A, worN=4)[1]),
    "signal.freqs": lambda x: np.abs(signal.freqs(x[:2], A, T)[1]),
    "signal.bilinear": lambda x: np.concatenate(signal.bilinear(x[:2], x[2:5])),
    "signal.tf2zpk gain": lambda x: signal.tf2zpk(x[:2], x[2:5])[2],
    "signal.zpk2tf": lambda x: signal.zpk2tf(x[:2], x[2:4], x[4])[0],
    "signal.sos2tf": lambda x: signal.sos2tf(np.concatenate([x]).reshape(1, 6))[0],
    "signal.lsim": lambda x: signal.lsim(([x[0]], [1.0, x[1]]), T, T)[1],
    "signal.step": lambda x: signal.step(([x[0]], [1.0, x[1]]), T=T)[1],
    "signal.impulse": lambda x: signal.impulse(([x[0]], [1.0, x[1]]), T=T)[1],
    "signal.bode": lambda x: signal.bode(([x[0]], [1.0, x[1]]), w=T + 1)[1],
    "signal.wiener": lambda x: signal.wiener(x, 3),
    "signal.medfilt": lambda x: signal.medfilt(x, 3),
    "signal.upfirdn": lambda x: signal.upfirdn(T, x, 2),
    "signal.gaussian": lambda x: signal.windows.gaussian(6, x[0]),
    "signal.kaiser": lambda x: signal.windows.kaiser(6, x[0]),
    "signal.chirp": lambda x: signal.chirp(T, x[0], 1.0, x[1]),
    "signal.gausspulse": lambda x: signal.gausspulse(T, x[0]),
    "signal.sawtooth": lambda x: signal.sawtooth(T * x[0]),
    "signal.peak_prominence": lambda x: signal.peak_prominences(x, [1, 3])[0],
    "signal.find_peaks": lambda x: x[signal.find_peaks(x)[0]],
    "signal.cspline1d": lambda x: signal.cspline1d(x),
    "signal.lombscargle": lambda x: signal.lombscargle(T, x, np.array([1.0, 2.0])),
    "signal.deconvolve": lambda x: signal.deconvolve(x, np.array([2.0, 1.0]))[0],
    "signal.czt": lambda x: np.abs(signal.czt(x)),
    "signal.minimum_phase": lambda x: signal.minimum_phase(
        np.concatenate([x[::-1] * 0.1, x[:1] * 3, x * 0.1])
    ),
}
INTEGRALS = {
    "integrate.trapezoid": lambda x: integrate.trapezoid(x, T),
    "integrate.simpson": lambda x: integrate.simpson(x, x=T),
    "integrate.cumulative_trapezoid": lambda x: integrate.cumulative_trapezoid(x, T),
    "integrate.cumulative_simpson": lambda x: integrate.cumulative_simpson(x, x=T),
    "integrate.romb": lambda x: integrate.romb(x[:5]),
    "integrate.quad": lambda x: integrate.quad(lambda t: np.exp(-x[0] * t * t), 0, 1)[0],
    "integrate.fixed_quad": lambda x: integrate.fixed_quad(lambda t: np.exp(-x[0] * t * t), 0, 1)[
        0
    ],
    "integrate.quad_vec": lambda x: integrate.quad_vec(lambda t: np.exp(-x * t * t), 0, 1)[0],
    "integrate.dblquad": lambda x: integrate.dblquad(
        lambda s, t: np.exp(-x[0] * t * s), 0, 1, 0, 1
    )[0],
    "integrate.tanhsinh": lambda x: (
        integrate.tanhsinh(lambda t: np.exp(-x[0] * t * t), 0, 1).integral
    ),
    "integrate.newton_cotes": lambda x: np.dot(integrate.newton_cotes(5)[0], x),
    "integrate.nquad": lambda x: integrate.nquad(lambda t: np.exp(-x[0] * t * t), [[0, 1]])[0],
    "integrate.odeint": lambda x: integrate.odeint(lambda y, t: -x[0] * y, [1.0], T)[:, 0],
}
INTERPOLATION = {
    "interpolate.CubicSpline": lambda x: interpolate.CubicSpline(T, x)(Q),
    "interpolate.CubicSpline at": lambda x: interpolate.CubicSpline(T, X)(x / 3),
    "interpolate.Pchip": lambda x: interpolate.PchipInterpolator(T, x)(Q),
    "interpolate.interp1d": lambda x: interpolate.interp1d(T, x)(Q),
    "interpolate.interp1d cubic": lambda x: interpolate.interp1d(T, x, kind="cubic")(Q),
    "interpolate.make_interp_spline": lambda x: interpolate.make_interp_spline(T, x)(Q),
    "interpolate.BSpline": lambda x: interpolate.BSpline(
        np.array([0, 0, 0, 0, 0.3, 0.6, 1, 1, 1, 1.0]), x, 3
    )(Q),
    "interpolate.BarycentricInterpolator": lambda x: interpolate.BarycentricInterpolator(T, x)(Q),
    "interpolate.KroghInterpolator": lambda x: interpolate.KroghInterpolator(T, x)(Q),
    "interpolate.barycentric_interpolate": lambda x: interpolate.barycentric_interpolate(
        T, x, Q, rng=0
    ),
    "interpolate.krogh_interpolate": lambda x: interpolate.krogh_interpolate(T, x, Q),
    "interpolate.pchip_interpolate": lambda x: interpolate.pchip_interpolate(T, x, Q),
    "interpolate.RegularGrid": lambda x: interpolate.RegularGridInterpolator(
        (T[:2], T[:3]), x.reshape(2, 3)
    )(np.array([[0.1, 0.2], [0.05, 0.3]])),
    "interpolate.interpn": lambda x: interpolate.interpn(
        (T[:2], T[:3]), x.reshape(2, 3), np.array([[0.1, 0.2], [0.05, 0.3]])
    ),
    "interpolate.RBF": lambda x: interpolate.RBFInterpolator(T[:, None], x)(Q[:, None]),
    "interpolate.PPoly": lambda x: interpolate.PPoly(x.reshape(3, 2), np.array([0, 0.5, 1.0]))(Q),
    "interpolate.PPoly derivative": lambda x: interpolate.PPoly(
        x.reshape(3, 2), np.array([0, 0.5, 1.0])
    ).derivative()(Q),
    "interpolate.CubicSpline integrate": lambda x: interpolate.CubicSpline(T, x).integrate(
        0.1, 0.8
    ),
    "interpolate.CubicHermite": lambda x: interpolate.CubicHermiteSpline(T, x, T)(Q),
    "interpolate.lagrange": lambda x: interpolate.lagrange(T, x)(Q),
    "interpolate.approximate_taylor": lambda x: interpolate.splev(Q, interpolate.splrep(T, x)),
    "interpolate.UnivariateSpline": lambda x: interpolate.UnivariateSpline(T, x, s=0)(Q),
    "interpolate.griddata": lambda x: interpolate.griddata(T, x, Q),
}
ROOTS = {
    "optimize.brentq": lambda p: optimize.brentq(lambda t: t**3 - p[0], 0, 3),
    "optimize.bisect": lambda p: optimize.bisect(lambda t: t**3 - p[0], 0, 3),
    "optimize.ridder": lambda p: optimize.ridder(lambda t: t**3 - p[0], 0, 3),
    "optimize.toms748": lambda p: optimize.toms748(lambda t: t**3 - p[0], 0, 3),
    "optimize.newton": lambda p: optimize.newton(lambda t: t**3 - p[0], 1.0),
    "optimize.newton secant tol": lambda p: optimize.newton(lambda t: t**3 - p[0], 1.0, tol=1e-12),
    "optimize.fsolve": lambda p: optimize.fsolve(lambda t: t**3 - p, np.ones(2)),
    "optimize.root hybr": lambda p: optimize.root(lambda t: t**3 - p, np.ones(2)).x,
    "optimize.root lm": lambda p: optimize.root(lambda t: t**3 - p, np.ones(2), method="lm").x,
    "optimize.root krylov": lambda p: (
        optimize.root(lambda t: t**3 - p, np.ones(2), method="krylov").x
    ),
    "optimize.fixed_point to be accelerated": lambda p: optimize.fixed_point(
        lambda t: np.cos(t * p[0]), 0.5
    ),
    "optimize.fixed_point": lambda p: optimize.fixed_point(lambda t: np.cos(t) * p[0], 0.5),
    "optimize.root_scalar": lambda p: (
        optimize.root_scalar(lambda t: t**3 - p[0], bracket=(0, 3)).root
    ),
    "optimize.rosen": lambda p: optimize.rosen(p),
    "optimize.rosen_der": lambda p: optimize.rosen_der(p),
    "optimize.nnls": lambda p: optimize.nnls(np.eye(2) * 2, p)[0],
    "optimize.lsq_linear": lambda p: optimize.lsq_linear(np.eye(2) * 2, p).x,
    "optimize.curve_fit": lambda x: optimize.curve_fit(
        lambda t, a, b: a * np.exp(b * t), T, np.exp(0.5 * T) * x[0] + 0.1 * x[1] * T
    )[0],
    "optimize.least_squares": lambda p: optimize.least_squares(lambda q: q - p, np.zeros(2)).x,
    "optimize.linear_sum": lambda p: p[
        optimize.linear_sum_assignment(np.array([[1.0, 2.0], [2.0, 1.0]]))[1]
    ],
}
OTHERS = {
    "ndimage.gaussian_filter1d": lambda x: ndimage.gaussian_filter1d(x, 1.0),
    "ndimage.convolve": lambda x: ndimage.convolve(x.reshape(2, 3), np.ones((2, 2))),
    "ndimage.zoom": lambda x: ndimage.zoom(x, 2),
    "spatial.cdist": lambda x: spatial.distance.cdist(x.reshape(3, 2), T.reshape(3, 2)),
    "spatial.Rotation": lambda x: spatial.transform.Rotation.from_rotvec(x[:3]).apply(x[3:]),
    "spatial.procrustes": lambda x: spatial.procrustes(
        x.reshape(3, 2), T.reshape(3, 2) + np.eye(3)[:, :2]
    )[2],
    "linalg.expm": lambda x: linalg.expm(x[:4].reshape(2, 2)),
    "linalg.logm": lambda x: linalg.logm(np.eye(2) * 3 + x[:4].reshape(2, 2)),
    "linalg.sqrtm": lambda x: linalg.sqrtm(np.eye(2) * 3 + x[:4].reshape(2, 2)),
    "linalg.solve_sylvester": lambda x: linalg.solve_sylvester(
        x[:4].reshape(2, 2), np.eye(2), np.eye(2)
    ),
    "linalg.toeplitz": lambda x: linalg.toeplitz(x),
    "linalg.block_diag": lambda x: linalg.block_diag(x[:4].reshape(2, 2), x[4:5].reshape(1, 1)),
    "linalg.solve_banded": lambda x: linalg.solve_banded(
        (1, 1), np.array([[0, 1, 1.0], [4, 4, 4], [1, 1, 0]]) * x[0], x[:3]
    ),
    "linalg.cho": lambda x: linalg.cho_solve(linalg.cho_factor(np.eye(3) * x[0] + 0.1), x[:3]),
}
SOLVERS = {
    f"integrate.solve_ivp, {m}": _solved(m)
    for m in ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")
}

NO_RULE = {"*": "MissingRuleError", "jit": "UntraceableError"}
LEAKS = {"*": "DualLeakError", "jit": "UntraceableError"}
UNTRACED = {"jit": "UntraceableError"}

# By mode, what is refused: what has no rule, or is no program that a tape can hold.
REFUSED: dict[str, dict[str, str]] = {
    "interpolate.BarycentricInterpolator": UNTRACED,
    "optimize.nnls": {"*": "MissingRuleError"},
    "optimize.curve_fit": {"*": "MissingRuleError"},
    "optimize.least_squares": {"*": "MissingRuleError"},
}


def _cases(functions: dict[str, Callable[[Any], Any]], x: np.ndarray) -> list[PackageFunction]:
    return [
        PackageFunction(
            "scipy", name, lambda f=f: (f, x), refused=REFUSED.get(name, {}), rtol=2e-5, atol=1e-6
        )
        for name, f in functions.items()
    ]


CASES = [
    case
    for functions, x in (
        (DISTRIBUTIONS, P), (STATISTICS, X), (SIGNALS, X), (INTEGRALS, X), (INTERPOLATION, X),
        (ROOTS, P), (SOLVERS, P), (OTHERS, X),
    )
    for case in _cases(functions, x)
]  # fmt: skip
