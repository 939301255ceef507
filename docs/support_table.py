"""Writes reference/support_table.md: ``python -m docs.support_table``, a minute or more.

What ``fwdad.supported`` says of each function that has a rule, and so has tried.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy

import fwdad
from fwdad.api.support import functions_with_rules

PAGE = Path(__file__).parent / "reference" / "support_table.md"
HEAD = "| function | forward | reverse | compiled |\n|---|---|---|---|\n"


def versions() -> str:
    """The line that says which versions the table is of."""
    return f"NumPy {np.__version__}, SciPy {scipy.__version__}."


def public_name(name: str) -> str:
    """The name without private modules: `numpy.random._generator.Generator.normal`."""
    return ".".join(part for part in name.split(".") if not part.startswith("_"))


# The modules in the order of the page; what stands in none of them comes last.
MODULES = [
    "numpy",
    "numpy.linalg",
    "numpy.fft",
    "math",
    "cmath",
    "scipy.linalg",
    "scipy.special",
    "scipy.fft",
    "scipy.ndimage",
    "scipy.spatial",
]
OTHERS = "Others"


def home(name: str) -> str:
    """The module that a name stands in: of `numpy.add.reduce` it is `numpy`."""
    return max((m for m in MODULES if name.startswith(f"{m}.")), key=len, default=OTHERS)


def kind(found: fwdad.Support) -> str:
    """The kind of a rule, in one word."""
    if not found.forward:
        return "no"
    words = found.forward.reason.partition(";")[0].partition(":")[0]
    return words.removesuffix(" rule").removeprefix("locally ")


def row(name: str, function: Callable[..., Any]) -> str:
    """The row of one function."""
    found = fwdad.supported(function)
    if not found.tried:
        return f"| `{name}` | {kind(found)} | not tried | not tried |"
    by_numpy = found.compiled.reason.startswith("runs under NumPy")
    compiled = "yes" if found.compiled else "NumPy" if by_numpy else "no"
    return f"| `{name}` | {kind(found)} | {'yes' if found.reverse else 'no'} | {compiled} |"


def functions() -> dict[str, Callable[..., Any]]:
    """Every function that the table has a row for, by its public name, module by module."""
    found = {
        public_name(name): function
        for name, function in functions_with_rules().items()
        if not name.rpartition(".")[2].startswith("_")  # a private one
        and not public_name(name).startswith("numpy.random")  # all alike: the page says how
    }
    order = [*MODULES, OTHERS]
    return dict(sorted(found.items(), key=lambda f: (order.index(home(f[0])), f[0].lower())))


def text() -> str:
    """The whole table."""
    parts, module = [versions() + "\n"], ""
    for name, function in functions().items():
        if home(name) != module:
            module = home(name)
            parts.append(f"\n## {module}\n\n{HEAD}")
        parts.append(row(name, function) + "\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
