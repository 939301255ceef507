"""The pages of the site that no build runs: other tools' programs beside ours; what is listed."""

import importlib
import math
import re
import types
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import fwdad
import fwdad.errors
import fwdad.scipy
import fwdad.testing
from docs import support_table

DOCS = Path(__file__).parent.parent / "docs"
PEERS = {
    "jax": ("JAX", ["jax"]),
    "autograd": ("autograd", ["autograd"]),
    "pytorch": ("PyTorch", ["torch"]),
    "casadi": ("CasADi", ["casadi"]),
    "finite_differences": ("SciPy", ["scipy.differentiate"]),
}
CARD = re.compile(r"\{grid-item-card\} (\w+)\n```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# A row whose last two cells are one piece of code each.
ROW = re.compile(r"^\| [^|]* \| `([^`|]+)` \| `([^`|]+)` \|$", re.MULTILINE)


def read_pairs(page, peer):
    """The pairs of programs and of expressions of a page, in order: ``(kind, theirs, ours)``."""
    text = (DOCS / "start" / "coming_from" / f"{page}.md").read_text(encoding="utf-8")
    cards = [(m.start(), m[1], m[2]) for m in CARD.finditer(text)]
    assert [side for _, side, _ in cards] == [peer, "fwdad"] * (len(cards) // 2)
    pairs = [
        (start, "program", theirs, ours)
        for (start, _, theirs), (_, _, ours) in zip(cards[::2], cards[1::2], strict=True)
    ]
    pairs += [(m.start(), "row", m[1], m[2]) for m in ROW.finditer(text)]
    return [rest for _, *rest in sorted(pairs)]


def numbers(value):
    """The numbers in a value, whatever holds them, as one array."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return np.concatenate([numbers(item) for item in value] or [np.zeros(0)])
    if hasattr(value, "full"):  # CasADi's matrices
        value = value.full()
    if hasattr(value, "detach"):  # PyTorch's tensors
        value = value.detach()
    return np.asarray(value, complex).ravel()


class Side:
    """One side of a page: its programs run one after the other, each from a file of its own."""

    def __init__(self, folder):
        self.names = {"__name__": "__main__"}
        self.folder = folder
        self.count = 0

    def run(self, source, mode):
        """Run a program, or evaluate an expression, in the names that there are so far."""
        self.folder.mkdir(exist_ok=True)
        path = self.folder / f"{self.count}.py"  # fwdad reads the source of what it differentiates
        self.count += 1
        path.write_text(source, encoding="utf-8")
        code = compile(source, str(path), mode)
        if mode == "eval":
            return eval(code, self.names)
        before = dict(self.names)
        exec(code, self.names)
        return {k: v for k, v in self.names.items() if before.get(k) is not v and is_result(v)}


def is_result(value):
    """Whether a name that a program binds is compared: not a function, class or module."""
    try:
        return bool(numbers(value).size)
    except (TypeError, ValueError, NotImplementedError, RuntimeError):  # CasADi's symbols
        return False


@pytest.mark.filterwarnings("default")  # the peers have their own
@pytest.mark.parametrize("page", PEERS)
def test_both_sides_agree(page, tmp_path):
    peer, packages = PEERS[page]
    for package in packages:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    theirs, ours = Side(tmp_path / "theirs"), Side(tmp_path / "ours")
    for kind, their_source, our_source in read_pairs(page, peer):
        mode = "eval" if kind == "row" else "exec"
        expected, found = theirs.run(their_source, mode), ours.run(our_source, mode)
        if kind == "program":
            shared = expected.keys() & found.keys()
            assert shared, f"nothing to compare in\n{their_source}\n{our_source}"
            expected, found = [[side[k] for k in sorted(shared)] for side in (expected, found)]
        tolerance = 1e-6 if page == "finite_differences" else 1e-12
        np.testing.assert_allclose(
            numbers(found), numbers(expected), rtol=tolerance, atol=tolerance, err_msg=our_source
        )


@pytest.mark.parametrize("page", PEERS)
def test_pages_have_pairs(page):
    kinds = [kind for kind, _, _ in read_pairs(page, PEERS[page][0])]
    assert kinds.count("row") >= 5
    assert kinds.count("program") >= 2


def test_a_wrong_row_is_found(tmp_path):
    side = Side(tmp_path / "one")
    assert side.run("def f(x):\n    return x\na = 2.0\n", "exec") == {"a": 2.0}
    assert not np.allclose(numbers(side.run("(f(a), [1.0])", "eval")), [2.0, 1.5])
    assert math.isnan(numbers([np.nan])[0].real)


LISTED = re.compile(r"^\.\. currentmodule:: (\S+)\n\n(.*?)^```", re.MULTILINE | re.DOTALL)


def listed():
    """The names that the pages of the reference list, with their modules."""
    found = []
    for page in sorted((DOCS / "reference" / "api").glob("*.md")):
        for module, block in LISTED.findall(page.read_text(encoding="utf-8")):
            found += [f"{module}.{name}" for name in re.findall(r"^   (\w+)$", block, re.MULTILINE)]
    return found


def is_error(name):
    """Whether a name of `fwdad.errors` is an exception."""
    x = getattr(fwdad.errors, name)
    return isinstance(x, type) and issubclass(x, fwdad.errors.FwdadError)


def public():
    """Every public name: those of the package, and those of its public modules."""
    names = set()
    for name in [*fwdad.__all__, "scipy", "testing"]:
        module = importlib.import_module(f"fwdad.{name}") if is_module(name) else None
        words = [name] if module is None else getattr(module, "__all__", ())
        names |= {f"fwdad.{name}.{word}" if module else f"fwdad.{word}" for word in words}
    return names


def is_module(name):
    """Whether a name of the package is a module; `fwdad.examples` has programs, and no names."""
    return isinstance(getattr(fwdad, name), types.ModuleType)


def test_every_public_name_is_in_the_reference():
    names = listed()
    assert len(names) == len(set(names))
    assert set(names) == public()


def test_every_error_has_a_remedy():
    text = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    told = set(
        re.findall(r"^\| \{class\}`~fwdad\.errors\.(\w+)` \| .+ \| .+ \|$", text, re.MULTILINE)
    )
    assert told == {name for name in vars(fwdad.errors) if is_error(name)} - {"FwdadError"}


def test_programs_of_pages_are_cells():
    """A fence of Python that is no cell, and not one of the pairs above, is run by nobody."""
    for page in sorted(DOCS.rglob("*.md")):
        if page.parent.name != "coming_from" and "_build" not in page.parts:
            assert "```python" not in page.read_text(encoding="utf-8"), page


TABLE = DOCS / "reference" / "support_table.md"
ROWS = re.findall(r"^\| `(.+?)` \|.*\|$", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
SAMPLE = [
    "numpy.add",
    "numpy.cumprod",
    "numpy.fft.fft",
    "numpy.floor",
    "numpy.linalg.eig",
    "numpy.linalg.solve",
    "numpy.sort",
    "scipy.special.erf",
]


def test_support_table_has_each_function_with_a_rule():
    known = support_table.functions()
    if support_table.versions() in TABLE.read_text(encoding="utf-8"):
        assert list(known) == ROWS, "run `python -m docs.support_table`"
    # other versions of NumPy and SciPy have a few functions more, or less
    assert len(known.keys() & set(ROWS)) > 0.9 * len(ROWS)


@pytest.mark.parametrize(
    "name",
    [name if name in SAMPLE else pytest.param(name, marks=pytest.mark.slow) for name in ROWS],
)
def test_support_table_is_current(name):
    text = TABLE.read_text(encoding="utf-8")
    if support_table.versions() not in text or find_spec("numba") is None:
        pytest.skip("the table is of other versions")
    row = support_table.row(name, support_table.functions()[name])
    assert f"\n{row}\n" in text, f"{row}: run `python -m docs.support_table`"


def test_primes_of_formulas_are_no_exponents(monkeypatch):
    for package in ("latex2mathml", "sphinx"):
        pytest.importorskip(package)
    monkeypatch.syspath_prepend(str(DOCS / "extensions"))
    written = importlib.import_module("mathml").mathml("T'' + x_1' + T^2")
    assert "<mrow><mi>T</mi><mi>&#x02033;</mi></mrow>" in written
    assert "<msup><mi>T</mi><mn>2</mn></msup>" in written  # an exponent is one
