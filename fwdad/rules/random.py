"""Draws of ``numpy.random``.

A draw whose parameters are inactive is a constant, like any other number of the program. Where a
parameter is active, the sampler's own code does not say how the number depends on it: these rules
raise, and say what to write instead.
"""

import inspect

import numpy as np

from fwdad.errors import MissingRuleError, UndefinedDerivativeError
from fwdad.rules.core.define import frule
from fwdad.tangents.zero import ZERO, Zero

# Draw from the standard distribution, which has no parameter, and move and stretch the numbers.
_STANDARD = {
    "normal": "loc + scale * rng.standard_normal(size)",
    "uniform": "low + (high - low) * rng.random(size)",
    "exponential": "scale * rng.standard_exponential(size)",
    "laplace": "loc + scale * rng.laplace(size=size)",
    "logistic": "loc + scale * rng.logistic(size=size)",
    "gumbel": "loc + scale * rng.gumbel(size=size)",
    "lognormal": "np.exp(mean + sigma * rng.standard_normal(size))",
    "multivariate_normal": "mean + np.linalg.cholesky(cov) @ rng.standard_normal(len(mean))",
    "rayleigh": "scale * np.sqrt(2 * rng.standard_exponential(size))",
    "weibull": "rng.standard_exponential(size) ** (1 / a)",
    "pareto": "np.expm1(rng.standard_exponential(size) / a)",
    "power": "np.exp(-rng.standard_exponential(size) / a)",
    "gamma": "scale * rng.standard_gamma(shape, size), if only scale is active",
}
_REARRANGED = {
    "permutation": "x[rng.permutation(len(x))]",
    "permuted": "np.take_along_axis(x, order, axis), with an order drawn beforehand",
    "shuffle": "x = x[rng.permutation(len(x))]",
    "choice": "a[rng.choice(len(a), size)]",
}
# no map from a standard distribution that SciPy or NumPy could differentiate
_SHAPED = (
    *("beta", "chisquare", "dirichlet", "f", "noncentral_chisquare", "noncentral_f"),
    *("standard_gamma", "standard_t", "triangular", "vonmises", "wald"),
)
_COUNTS = (
    *("binomial", "geometric", "hypergeometric", "integers", "logseries", "multinomial"),
    *("multivariate_hypergeometric", "negative_binomial", "poisson", "randint", "zipf"),
)


def _draw(sampler, name, error, advice):
    fixed = ("size", "dtype", "out")
    parameters = [p for p in inspect.signature(sampler).parameters if p not in fixed]

    @frule(sampler, argnums=parameters)
    def draw_frule(primals, tangents, **options):
        """A constant, unless a parameter is active."""
        for parameter, x_dot in zip(parameters, tangents, strict=True):
            if not isinstance(x_dot, Zero):
                raise error(
                    f"a draw from numpy.random's {name} has no derivative with respect to "
                    f"`{parameter}`. {advice}"
                )
        named = dict(zip(parameters, primals, strict=True)) | options
        generator = (named.pop("self"),) if "self" in named else ()
        return sampler(*generator, **named), ZERO


def _register(name, error, advice):
    for source in (np.random.Generator, np.random.RandomState, np.random):
        if hasattr(source, name):
            _draw(getattr(source, name), name, error, advice)


for _name, _formula in _STANDARD.items():
    _register(_name, MissingRuleError, f"Write it as a map of a standard draw: {_formula}")
for _name, _formula in _REARRANGED.items():
    _register(_name, MissingRuleError, f"Draw the indices, and index with them: {_formula}")
for _name in _SHAPED:
    _register(
        _name,
        MissingRuleError,
        "Write it as a function of a draw from a distribution without parameters, such as mu + "
        "sigma * rng.standard_normal() for a normal one",
    )
for _name in _COUNTS:
    _register(
        _name,
        UndefinedDerivativeError,
        "Its samples are integers, which jump as the parameter changes. Differentiate an "
        "expected value, or use fwdad.stop_gradient if the sample is a constant",
    )
