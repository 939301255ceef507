"""Draws: constants, unless a parameter is active, and then an error that says what to write."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import MissingRuleError, UndefinedDerivativeError
from fwdad.rules.core.define import call_rule
from fwdad.rules.core.registry import RULES
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO

# sampler: (arguments, which of them is active)
SMOOTH = {
    "normal": ((1.0, 2.0), 1),
    "uniform": ((1.0, 2.0), 0),
    "exponential": ((1.5,), 0),
    "laplace": ((1.0, 2.0), 0),
    "logistic": ((1.0, 2.0), 1),
    "gumbel": ((1.0, 2.0), 1),
    "lognormal": ((1.0, 2.0), 0),
    "multivariate_normal": ((np.zeros(2), np.eye(2)), 1),
    "rayleigh": ((1.5,), 0),
    "weibull": ((1.5,), 0),
    "pareto": ((1.5,), 0),
    "power": ((1.5,), 0),
    "gamma": ((1.5, 2.0), 0),
    "beta": ((1.5, 2.0), 1),
    "chisquare": ((3.0,), 0),
    "dirichlet": ((np.array([1.0, 2.0]),), 0),
    "f": ((3.0, 4.0), 0),
    "noncentral_chisquare": ((3.0, 4.0), 1),
    "noncentral_f": ((3.0, 4.0, 0.5), 2),
    "standard_gamma": ((1.5,), 0),
    "standard_t": ((3.0,), 0),
    "triangular": ((0.0, 0.5, 2.0), 1),
    "vonmises": ((0.5, 2.0), 0),
    "wald": ((0.5, 2.0), 0),
    "permutation": ((np.arange(3.0),), 0),
    "choice": ((np.arange(3.0),), 0),
}
COUNTS = {
    "binomial": ((5, 0.5), 1),
    "geometric": ((0.5,), 0),
    "logseries": ((0.5,), 0),
    "multinomial": ((5, np.array([0.5, 0.5])), 1),
    "negative_binomial": ((5, 0.5), 1),
    "poisson": ((2.5,), 0),
    "zipf": ((2.5,), 0),
}
SOURCES = {
    "generator": lambda: np.random.default_rng(3),
    "legacy": lambda: np.random.RandomState(3),
    "module": lambda: np.random,
}


def _rows(table):
    return [(name, *row) for name, row in table.items()]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("name", "args", "active"), _rows(SMOOTH))
def test_an_active_parameter_says_what_to_write(name, args, active, source):
    draw = getattr(SOURCES[source](), name)

    def program(x):
        return draw(*[x if k == active else a for k, a in enumerate(args)])

    with pytest.raises(
        MissingRuleError, match=rf"{name} has no derivative with respect to `\w+`.*rng\."
    ):
        fwdad.jvp(program, args[active], args[active])


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("name", "args", "active"), _rows(COUNTS))
def test_a_count_has_no_slope(name, args, active, source):
    draw = getattr(SOURCES[source](), name)

    def program(x):
        return draw(*[x if k == active else a for k, a in enumerate(args)])

    with pytest.raises(UndefinedDerivativeError, match="samples are integers"):
        fwdad.jvp(program, args[active], args[active])


@pytest.mark.parametrize(("name", "args", "active"), _rows(SMOOTH | COUNTS))
def test_inactive_draws_are_the_plain_ones(name, args, active):
    sampler = getattr(np.random.Generator, name)
    want = sampler(np.random.default_rng(3), *args, size=4) if name != "permutation" else None
    rng = np.random.default_rng(3)
    if name == "permutation":
        want = np.random.default_rng(3).permutation(*args)
        y, y_dot = call_rule(sampler, (rng, *args), (ZERO,) * (1 + len(args)))
    else:
        y, y_dot = call_rule(sampler, (rng, *args), (ZERO,) * (1 + len(args)), size=4)
    assert_array_equal(y, want)
    assert y_dot is ZERO


def test_the_parameter_is_named():
    rng = np.random.default_rng(3)
    with pytest.raises(MissingRuleError, match="`scale`"):
        call_rule(np.random.Generator.normal, (rng, 0.0, 1.0), (ZERO, ZERO, Chunk(np.ones(1))))
    with pytest.raises(MissingRuleError, match="`cov`"):
        call_rule(
            np.random.multivariate_normal,
            (np.zeros(2), np.eye(2)),
            (ZERO, Chunk(np.ones((1, 2, 2)))),
            size=3,
        )


def test_what_the_message_says_to_write_works():
    """Location and scale outside of the draw: the derivative along them is the draw."""
    z = np.random.default_rng(3).standard_normal(5)

    def sample(parameters):
        mu, sigma = parameters
        rng = np.random.default_rng(3)
        return mu + sigma * rng.standard_normal(5)

    got = fwdad.jacobian(sample, np.array([1.0, 2.0]))
    assert_allclose(got, np.stack([np.ones(5), z], axis=1), rtol=1e-15)


def test_every_sampler_with_parameters_has_a_rule():
    whole = {"bytes", "integers", "hypergeometric", "multivariate_hypergeometric", "spawn"}
    plain = {"random", "standard_normal", "standard_cauchy", "standard_exponential"}
    known = {*SMOOTH, *COUNTS, "permuted", "shuffle", "bit_generator"}
    names = {n for n in dir(np.random.Generator) if not n.startswith("_")}
    assert names - plain - whole - known == set()
    for name in (names & known) - {"bit_generator"}:
        assert getattr(np.random.Generator, name) in RULES
