"""``jax.nn``: the activation functions in common use, written with NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import erf, log_softmax, logsumexp, softmax
from scipy.special import expit as sigmoid

__all__ = [
    "elu",
    "gelu",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "logsumexp",
    "one_hot",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "swish",
    "tanh",
]

tanh = np.tanh


def relu(x: Any) -> Any:
    """``max(x, 0)``, whose derivative at 0 is 0, as JAX has it."""
    return np.where(x > 0, x, 0.0)


def leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    """The number where it is not negative, elsewhere ``negative_slope * x``."""
    return np.where(x >= 0, x, negative_slope * x)


def elu(x: Any, alpha: float = 1.0) -> Any:
    """The number where it is positive, elsewhere ``alpha * (exp(x) - 1)``."""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0.0)))


def softplus(x: Any) -> Any:
    """``log(1 + exp(x))``."""
    return np.logaddexp(x, 0.0)


def log_sigmoid(x: Any) -> Any:
    """``log(sigmoid(x))``."""
    return -np.logaddexp(-x, 0.0)


def silu(x: Any) -> Any:
    """``x * sigmoid(x)``."""
    return x * sigmoid(x)


swish = silu


def gelu(x: Any, approximate: bool = True) -> Any:
    """The number times the normal distribution function, by tanh unless told otherwise."""
    if approximate:
        return 0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1.0 + erf(x / np.sqrt(2.0)))


def one_hot(x: Any, num_classes: int) -> Any:
    """Ones where an index is, among zeros, along a new last axis."""
    return (np.asarray(x)[..., None] == np.arange(num_classes)).astype(float)


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"jax.nn.{name} has no counterpart in fwdad. Write it with NumPy: every operation of it is "
        "differentiated"
    )
