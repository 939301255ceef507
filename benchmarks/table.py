"""Markdown tables, and the machine that they hold for."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks import SINGLE_THREAD

PACKAGES = ("numpy", "scipy", "numba", "autograd", "jax", "torch", "casadi", "asdex")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns line up in plain text too."""
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]
    rule = ["-" * width for width in widths]
    return "\n".join(
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |"
        for line in [lines[0], rule, *lines[1:]]
    )


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1 or unit == "µs":
            return f"{three_digits(seconds * scale)} {unit}"
    raise AssertionError(seconds)


def size(number: float) -> str:
    """Bytes in kB or MB."""
    return f"{number / 1e6:.3g} MB" if number >= 1e6 else f"{number / 1e3:.3g} kB"


def three_digits(value: float) -> str:
    """Three significant digits, without an exponent."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def versions() -> dict[str, str]:
    """Python and the packages that are compared."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def machine() -> dict[str, str]:
    """The processor, the cores and the threads that the libraries were told to use."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    threads = {name: os.environ.get(name, "") for name in SINGLE_THREAD}
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": model,
        "cores": str(os.cpu_count()),
        "load at the start": f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "-",
        "single-threaded by": " ".join(f"{k}={v}" for k, v in threads.items()),
    }
