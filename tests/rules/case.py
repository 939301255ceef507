"""``Case``: one row of the tables of functions that have rules, and random arrays for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.rules.core.registry import function_name


class Case:
    """A function with arguments where it is smooth.

    Parameters
    ----------
    function : callable
        The primal.
    *args
        Its arguments.
    check : dict, optional
        Settings of the harness: ``argnums``, ``rtol`` with its ``reason``, ``opaque``.
    linear : tuple of int, optional
        The primals whose transposes are checked.
    **options
        Keyword arguments of the function.
    """

    def __init__(
        self,
        function: Any,
        *args: Any,
        check: dict[str, Any] | None = None,
        linear: tuple[int, ...] = (),
        **options: Any,
    ) -> None:
        self.function = function
        self.args = args
        self.check = check or {}
        self.linear = linear
        self.options = options

    def __repr__(self) -> str:
        parts = [_shown(x) for x in self.args]
        parts += [f"{name}={_shown(value)}" for name, value in self.options.items()]
        return f"{function_name(self.function)}({', '.join(parts)})".replace(" ", "")


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        order = "" if value.flags.c_contiguous else "F" if value.flags.f_contiguous else "strided"
        return f"{value.dtype.char}{list(value.shape)}{order}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_shown, value))}]"
    text = str(value)
    return type(value).__name__ if " at 0x" in text else text  # no addresses: ids must repeat


def transposes(cases: list[Case]) -> list[tuple[Case, int]]:
    """One row for each linear argument of each case."""
    return [(case, k) for case in cases for k in case.linear]


class Draw:
    """Random arrays for tables of cases, the same in every run."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def real(self, *shape: int) -> np.ndarray:
        """Normal numbers."""
        return self.rng.standard_normal(shape)

    def complex(self, *shape: int) -> np.ndarray:
        """Complex normal numbers."""
        return self.real(*shape) + 1j * self.real(*shape)

    def regular(self, *shape: int, complex: bool = False) -> np.ndarray:  # noqa: A002
        """Square matrices far from singular ones."""
        a = self.complex(*shape) if complex else self.real(*shape)
        return a + 3 * np.sqrt(shape[-1]) * np.eye(shape[-1])

    def definite(self, *shape: int, complex: bool = False) -> np.ndarray:  # noqa: A002
        """Hermitian positive definite matrices with well separated eigenvalues."""
        a = self.complex(*shape) if complex else self.real(*shape)
        n = shape[-1]
        return a @ np.conj(np.swapaxes(a, -1, -2)) / n + np.diag(1.0 + np.arange(n))
