"""The tables of benchmarks/README.md as numbers: the plots of a page repeat none of them."""

import math
import re
from pathlib import Path

README = Path(__file__).parent.parent.parent / "benchmarks" / "README.md"
UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9, "MB": 1e6, "kB": 1e3, "GB": 1e9, "×": 1.0}
QUANTITY = re.compile(r"(-?[\d.]+)\s*(s|ms|µs|ns|GB|MB|kB|×)?")


class MissingTableError(LookupError):
    """benchmarks/README.md has no table with these columns; the message names them."""


def cells(line: str) -> list[str]:
    """The cells of a row."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def table(*columns: str, number: int = 0) -> dict[str, dict[str, str]]:
    """Find the table that has all of these columns; if several do, by its number.

    Returns its rows by their first cells, each a dict of its cells by the columns' names.
    """
    found = []
    lines = README.read_text(encoding="utf-8").splitlines()
    for k, line in enumerate(lines[:-1]):
        if line.startswith("|") and re.fullmatch(r"\|[-:| ]+\|", lines[k + 1]):
            head = cells(line)
            if set(columns) <= set(head):
                rows = {}
                for row in lines[k + 2 :]:
                    if not row.startswith("|"):
                        break
                    rows[cells(row)[0]] = dict(zip(head, cells(row), strict=True))
                found.append(rows)
    if number >= len(found):
        message = f"{README.name} has {len(found)} tables with the columns {', '.join(columns)}"
        raise MissingTableError(message)
    return found[number]


def quantity(cell: str) -> float:
    """The first quantity of a cell in seconds, bytes or times; NaN where none was measured."""
    match = QUANTITY.match(cell.replace(",", "").lstrip("< "))
    return float(match[1]) * UNITS[match[2] or "×"] if match else math.nan


def ratio(cell: str) -> float:
    """The ratio in parentheses behind a time: ``"139 µs (21.9)"`` is 21.9."""
    match = re.search(r"\(([\d.]+)", cell)
    return float(match[1]) if match else math.nan
