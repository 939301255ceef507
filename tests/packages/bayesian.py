"""Likelihoods and priors of samplers, kernels of Gaussian processes."""

import numpy as np

from tests.packages.package_function import PackageFunction

T = np.linspace(0.0, 3.0, 6)
Y = np.array([1.0, 0.7, 0.2, -0.1, -0.4, -0.3])


def _emcee():
    import emcee

    def log_probability(p):
        return -0.5 * np.sum((Y - p[0] * np.cos(p[1] * T)) ** 2) / 0.01

    sampler = emcee.EnsembleSampler(8, 2, log_probability)

    def f(p):
        return sampler.compute_log_prob(p.reshape(1, 2))[0]

    return f, np.array([1.0, 0.8])


def _emcee_time():
    from emcee.autocorr import function_1d

    return lambda x: function_1d(x)[:4], np.array([0.3, 1.0, 0.2, -0.7, 0.9, -0.4])


def _dynesty():
    from dynesty.bounding import Ellipsoid

    shape = np.array([[2.0, 0.3], [0.3, 1.0]])

    def f(p):
        return Ellipsoid(2, np.array([0.1, 0.2]), shape).distance(p)

    return f, np.array([0.7, -0.4])


def _bilby_prior():
    import bilby

    prior = bilby.core.prior.Gaussian(mu=0.3, sigma=1.2)
    return lambda p: prior.ln_prob(p[0]), np.array([0.8])


def _bilby_priors():
    import bilby

    priors = bilby.core.prior.PriorDict(
        {"a": bilby.core.prior.Sine(), "b": bilby.core.prior.PowerLaw(2, 1, 5)}
    )

    def f(u):
        return np.array(priors.rescale(["a", "b"], u))

    return f, np.array([0.3, 0.6])


def _bilby_likelihood():
    import bilby

    likelihood = bilby.core.likelihood.GaussianLikelihood(
        T, Y, lambda t, a, w: a * np.cos(w * t), sigma=0.1
    )

    def f(p):
        return likelihood.log_likelihood({"a": p[0], "w": p[1]})

    return f, np.array([1.0, 0.8])


def _kernel():
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    points = T[:, None]

    def f(p):
        kernel = ConstantKernel(p[0]) * RBF(p[1]) + WhiteKernel(0.1)
        k = kernel(points)
        return -0.5 * Y @ np.linalg.solve(k, Y) - 0.5 * np.linalg.slogdet(k)[1]

    return f, np.array([1.3, 0.9])


def _marginal():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    process = GaussianProcessRegressor(RBF(1.0) + WhiteKernel(0.1), optimizer=None)
    process.fit(T[:, None], Y)

    def f(theta):
        return process.log_marginal_likelihood(theta)

    return f, np.array([0.2, -1.5])


def _predict():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    process = GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None).fit(T[:, None], Y)
    return lambda p: process.predict(p.reshape(1, 1))[0], np.array([1.23])


UNTRACED = {"jit": "UntraceableError"}

CASES = [
    PackageFunction(
        "emcee",
        "EnsembleSampler.compute_log_prob",
        _emcee,
    ),
    PackageFunction("emcee", "autocorr.function_1d", _emcee_time),
    PackageFunction("dynesty", "Ellipsoid.distance", _dynesty),
    PackageFunction("bilby", "a prior's ln_prob", _bilby_prior),
    PackageFunction("bilby", "PriorDict.rescale", _bilby_priors),
    PackageFunction("bilby", "GaussianLikelihood", _bilby_likelihood),
    PackageFunction("scikit-learn", "kernels of a Gaussian process", _kernel),
    PackageFunction(
        "scikit-learn",
        "log_marginal_likelihood",
        _marginal,
    ),
    PackageFunction("scikit-learn", "predict of a Gaussian process", _predict),
]
