"""``jax.random``: refused, since a key stands for JAX's own stream of numbers."""

from typing import NoReturn


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(_MESSAGE.format(name=name))


_MESSAGE = (
    "jax.random.{name} has no counterpart in fwdad: keys stand for JAX's own stream of numbers. "
    "Write rng = np.random.default_rng(0) and rng.normal(size=shape), outside the function that is "
    "differentiated, or with a generator that it makes"
)
