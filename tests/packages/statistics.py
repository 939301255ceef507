"""Statistics: likelihoods, effect sizes, fits, hidden states."""

import numpy as np

from tests.packages.package_function import PackageFunction


def _sample(seed, n=12):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return np.column_stack([np.ones(n), x]), rng


def _statsmodels_ols():
    import statsmodels.api as sm

    X, rng = _sample(0)
    model = sm.OLS(X @ [1.0, 2.0, -1.0] + rng.normal(size=12), X)
    return model.loglike, np.array([0.9, 1.8, -0.7])


def _statsmodels_ols_fit():
    import statsmodels.api as sm

    X, rng = _sample(0)
    y = X @ [1.0, 2.0, -1.0] + rng.normal(size=12)

    def f(p):
        return sm.OLS(p, X).fit().params

    return f, y


def _statsmodels_logit():
    import statsmodels.api as sm

    X, rng = _sample(1)
    model = sm.Logit((rng.uniform(size=12) < 0.5).astype(float), X)
    return model.loglike, np.array([0.2, 0.5, -0.3])


def _statsmodels_poisson_glm():
    import statsmodels.api as sm

    X, rng = _sample(2)
    model = sm.GLM(rng.poisson(2.0, size=12), X, family=sm.families.Poisson())
    return model.loglike, np.array([0.2, 0.3, -0.1])


def _statsmodels_negative_binomial():
    import statsmodels.api as sm

    X, rng = _sample(3)
    model = sm.NegativeBinomial(rng.poisson(2.0, size=12), X)
    return model.loglike, np.array([0.2, 0.3, -0.1, 0.5])


def _series(n=20):
    return np.cumsum(np.random.default_rng(4).normal(size=n)) * 0.3


def _statsmodels_sarimax():
    from statsmodels.tsa.statespace.sarimax import SARIMAX

    model = SARIMAX(_series(), order=(1, 0, 1))
    return model.loglike, np.array([0.5, 0.2, 0.8])


def _statsmodels_components():
    from statsmodels.tsa.statespace.structural import UnobservedComponents

    model = UnobservedComponents(_series(), level="local level")
    return model.loglike, np.array([0.5, 0.2])


def _statsmodels_varmax():
    from statsmodels.tsa.statespace.varmax import VARMAX

    y = np.random.default_rng(5).normal(size=(20, 2))
    model = VARMAX(y, order=(1, 0), trend="n")
    return model.loglike, np.array([0.3, 0.1, -0.1, 0.2, 1.0, 0.1, 0.8])


def _statsmodels_arma_process():
    from statsmodels.tsa.arima_process import arma_impulse_response

    def f(p):
        return arma_impulse_response([1.0, -p[0], -p[1]], [1.0, p[2]], leads=6)

    return f, np.array([0.5, 0.2, 0.4])


def _statsmodels_kde():
    from statsmodels.nonparametric.kernels_asymmetric import pdf_kernel_asym

    data = np.array([0.5, 1.2, 2.0, 3.1])

    def f(p):
        return pdf_kernel_asym(p[0], data, p[1], "gamma")

    return f, np.array([1.5, 0.4])


def _pingouin_effsize():
    import pingouin

    other = np.array([1.0, 2.5, 3.0, 4.5])

    def f(p):
        return pingouin.compute_effsize(p, other, eftype="hedges")

    return f, np.array([2.0, 3.5, 1.0, 6.0, 4.0])


def _pingouin_convert():
    import pingouin

    def f(p):
        return pingouin.convert_effsize(p[0], "cohen", "pointbiserialr", nx=10, ny=12)

    return f, np.array([0.6])


def _pingouin_circular():
    import pingouin

    return lambda p: pingouin.circ_r(p), np.array([0.3, 0.8, 1.5, 2.0])


def _lmfit_model():
    from lmfit.models import GaussianModel

    model = GaussianModel()
    x = np.linspace(-2.0, 2.0, 9)

    def f(p):
        return model.eval(x=x, amplitude=p[0], center=p[1], sigma=p[2])

    return f, np.array([2.0, 0.3, 0.8])


def _lmfit_lineshape():
    from lmfit.lineshapes import pvoigt

    x = np.linspace(-2.0, 2.0, 9)
    return lambda p: pvoigt(x, p[0], p[1], p[2], p[3]), np.array([2.0, 0.3, 0.8, 0.4])


def _lmfit_residual():
    from lmfit import Parameters

    x = np.linspace(0.0, 1.0, 5)

    def f(p):
        parameters = Parameters()
        parameters.add("a", value=p[0], min=0.0, max=10.0)
        parameters.add("b", value=p[1])
        return parameters["a"] * np.exp(-parameters["b"] * x)

    return f, np.array([2.0, 0.7])


def _uncertainties_product():
    from uncertainties import ufloat

    def f(p):
        a, b = ufloat(p[0], p[1]), ufloat(p[2], 0.2)
        return (a * b + a).std_dev

    return f, np.array([2.0, 0.3, 1.5])


def _uncertainties_umath():
    from uncertainties import ufloat, umath

    def f(p):
        return umath.exp(ufloat(p[0], 0.1) * 2.0).nominal_value

    return f, np.array([0.4])


def _lifelines_weibull():
    import lifelines

    fitter = lifelines.WeibullFitter()
    t = np.array([1.0, 2.0, 3.5])
    return lambda p: fitter._cumulative_hazard(p, t), np.array([2.0, 1.3])


def _lifelines_concordance():
    from lifelines.utils import concordance_index

    t, e = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1, 1, 0, 1])
    return lambda p: p @ t + concordance_index(t, p, e), np.array([0.3, 0.2, 0.9, 0.8])


def _arch_constant_mean():
    from arch.univariate import GARCH, ConstantMean

    model = ConstantMean(np.random.default_rng(6).normal(size=30), volatility=GARCH(1, 0, 1))
    y = model._y if hasattr(model, "_y") else model.y
    sigma2 = np.full(30, 1.0)
    backcast, bounds = 1.0, model.volatility.variance_bounds(np.asarray(y))

    def f(p):
        return model._loglikelihood(p, sigma2, backcast, bounds)

    return f, np.array([0.1, 0.1, 0.1, 0.7])


def _arch_normal():
    from arch.univariate import Normal

    resids = np.array([0.5, -1.0, 0.3, 0.2])
    distribution = Normal()
    return (
        lambda p: distribution.loglikelihood([], resids - p[0], p[1] * np.ones(4)),
        np.array([0.1, 0.9]),
    )


def _arch_students_t():
    from arch.univariate import StudentsT

    resids = np.array([0.5, -1.0, 0.3, 0.2])
    distribution = StudentsT()
    return (
        lambda p: distribution.loglikelihood(p[:1], resids, p[1] * np.ones(4)),
        np.array([5.0, 0.9]),
    )


def _hmmlearn_score():
    from hmmlearn.hmm import GaussianHMM

    X = np.random.default_rng(7).normal(size=(8, 1))

    def f(p):
        model = GaussianHMM(n_components=2, covariance_type="diag")
        model.startprob_ = np.array([0.6, 0.4])
        model.transmat_ = np.array([[0.7, 0.3], [0.2, 0.8]])
        model.means_ = np.array([[p[0]], [p[1]]])
        model.covars_ = np.array([[p[2]], [p[3]]])
        return model.score(X)

    return f, np.array([-0.5, 0.8, 0.9, 1.1])


def _hmmlearn_density():
    from hmmlearn.stats import log_multivariate_normal_density

    X = np.random.default_rng(7).normal(size=(4, 2))

    def f(p):
        means = np.array([[p[0], p[1]], [0.5, 0.2]])
        covars = np.array([[p[2], 1.0], [0.8, p[3]]])
        return log_multivariate_normal_density(X, means, covars, "diag")

    return f, np.array([-0.5, 0.8, 0.9, 1.1])


def _sklearn_kernel():
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    X = np.random.default_rng(8).normal(size=(4, 2))

    def f(p):
        kernel = ConstantKernel(p[0]) * RBF(p[1])
        return kernel(X)

    return f, np.array([2.0, 0.7])


def _sklearn_loss():
    from sklearn.metrics import mean_squared_error

    y = np.array([1.0, 2.0, 3.0])
    return lambda p: mean_squared_error(y, p), np.array([0.8, 2.2, 2.9])


CASES = [
    PackageFunction("statsmodels", "OLS.loglike", _statsmodels_ols),
    PackageFunction(
        "statsmodels",
        "OLS.fit, params by the observations",
        _statsmodels_ols_fit,
        {"jit": "UntraceableError"},
        why="a cache that existed before is filled with values",
    ),
    PackageFunction("statsmodels", "Logit.loglike", _statsmodels_logit),
    PackageFunction("statsmodels", "GLM.loglike, Poisson", _statsmodels_poisson_glm),
    PackageFunction("statsmodels", "NegativeBinomial.loglike", _statsmodels_negative_binomial),
    PackageFunction(
        "statsmodels",
        "SARIMAX.loglike",
        _statsmodels_sarimax,
        {"*": "DualLeakError", "jit": "UntraceableError"},
        why="the filter is compiled code",
    ),
    PackageFunction(
        "statsmodels",
        "UnobservedComponents.loglike",
        _statsmodels_components,
        {"*": "DualLeakError", "jit": "UntraceableError"},
        why="the filter is compiled code",
    ),
    PackageFunction(
        "statsmodels",
        "VARMAX.loglike",
        _statsmodels_varmax,
        {"*": "DualLeakError", "jit": "UntraceableError"},
        why="the filter is compiled code",
    ),
    PackageFunction(
        "statsmodels",
        "arma_impulse_response",
        _statsmodels_arma_process,
    ),
    PackageFunction("statsmodels", "pdf_kernel_asym, gamma", _statsmodels_kde),
    PackageFunction("pingouin", "compute_effsize, Hedges' g", _pingouin_effsize),
    PackageFunction("pingouin", "convert_effsize", _pingouin_convert),
    PackageFunction("pingouin", "circ_r", _pingouin_circular),
    PackageFunction("lmfit", "GaussianModel.eval", _lmfit_model),
    PackageFunction("lmfit", "pvoigt", _lmfit_lineshape),
    PackageFunction(
        "lmfit",
        "Parameters with bounds, in a model",
        _lmfit_residual,
        {"jit": "UntraceableError"},
        why="Parameters() notes the time at which it is made",
    ),
    PackageFunction(
        "uncertainties", "ufloat, std_dev of a sum of products", _uncertainties_product
    ),
    PackageFunction("uncertainties", "umath.exp", _uncertainties_umath),
    PackageFunction("lifelines", "WeibullFitter's cumulative hazard", _lifelines_weibull),
    PackageFunction("lifelines", "concordance_index", _lifelines_concordance),
    PackageFunction(
        "arch",
        "ConstantMean with GARCH, log likelihood",
        _arch_constant_mean,
        {"*": "MissingRuleError", "jit": "UntraceableError"},
        why="the recursion is compiled code",
    ),
    PackageFunction("arch", "Normal.loglikelihood", _arch_normal),
    PackageFunction("arch", "StudentsT.loglikelihood", _arch_students_t),
    PackageFunction(
        "hmmlearn",
        "GaussianHMM.score",
        _hmmlearn_score,
        {"*": "MissingRuleError", "jit": "UntraceableError"},
        why="the forward pass is compiled code",
    ),
    PackageFunction("hmmlearn", "log_multivariate_normal_density", _hmmlearn_density),
    PackageFunction("scikit-learn", "RBF times constant kernel", _sklearn_kernel),
    PackageFunction(
        "scikit-learn",
        "mean_squared_error",
        _sklearn_loss,
    ),
]
