"""The table in README.md, made of the cases: ``python -m tests.packages.table``."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from tests.packages.test_packages import CASES, MODES

HEAD = """\
# Packages that others wrote

What fwdad does with functions of packages that nobody here wrote, unmodified: "right" says that the
derivative is that of differences, else it raises. To run them,
`pip install -r tests/packages/requirements.txt`, then `pytest -m slow tests/packages`. This file is
written by `python -m tests.packages.table`, where the packages are installed.

| package | version | function | forward mode | reverse mode | `jit` | why it is refused |
|---|---|---|---|---|---|---|
"""


def verdict(case, modes):
    """What is asserted of a case in some modes."""
    refused = {case.refused.get(mode, case.refused.get("*")) for mode in modes}
    return " or ".join(sorted("right" if r is None else f"`{r}`" for r in refused))


def rows():
    for case in sorted(CASES, key=lambda case: str(case).casefold()):
        cells = (
            case.package,
            version(case.package),
            case.name,
            *(verdict(case, modes) for modes in (("jvp", "forward"), ("reverse",), ("jit",))),
            case.why,
        )
        yield f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    assert set(MODES) == {"jvp", "forward", "reverse", "jit"}
    Path(__file__).with_name("README.md").write_text(HEAD + "".join(rows()), encoding="utf-8")
