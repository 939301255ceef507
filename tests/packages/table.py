"""The table in README.md, made of the cases: ``python -m tests.packages.table``."""

from __future__ import annotations

import warnings
from importlib.metadata import version
from pathlib import Path

from fwdad.errors import FwdadError
from tests.packages.explained import unexplained
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


def explained():
    """How many refusals say what stopped where and what can be done, of how many, by mode."""
    counts = {"jvp": [0, 0], "jit": [0, 0]}
    for case in CASES:
        for mode, count in counts.items():
            if case.refused.get(mode, case.refused.get("*")) is not None:
                try:
                    MODES[mode](*case.make())
                except FwdadError as error:
                    count[0] += not unexplained(error)
                    count[1] += 1
    return counts


def foot(counts):
    """The sentence below the table."""
    (jvp, of_jvp), (jit, of_jit) = counts.values()
    return (
        "\nOf what is refused, an error names the line of the user's, the line of the package's\n"
        f"at which it stopped, and what can be done: {jvp} of {of_jvp} in forward mode, {jit} of "
        f"{of_jit} under `jit`.\n"
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    assert set(MODES) == {"jvp", "forward", "reverse", "jit"}
    text = HEAD + "".join(rows()) + foot(explained())
    Path(__file__).with_name("README.md").write_text(text, encoding="utf-8")
