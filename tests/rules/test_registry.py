"""Every registration has a case, and everything linear has a transpose."""

import importlib
import operator
from pathlib import Path

import numpy as np
import pytest

import fwdad
from fwdad.eager_reverse.reverse_rules import _pulled
from fwdad.ir.abstract_eval.purity import trusts_lengths
from fwdad.ir.abstract_eval.shape_rules import BY_SHAPE
from fwdad.rules.core.adjoints import TRANSPOSES
from fwdad.rules.core.define import frule
from fwdad.rules.core.registry import RULES, find_rule, function_name, import_pending
from fwdad.rules.matrix_functions import expm_derivative, logm_derivative
from fwdad.rules.sparse import sparse_solution
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.laws.listing import listed

HERE = Path(__file__).parent

# function or module: why no row of a table of cases checks it
WITHOUT_CASE = {
    "numpy.random": "no two draws agree: test_random.py compares them from one seed",
    "numpy.common_type": "its result is a type: test_structure.py asks for it",
    "numpy.empty_like": "its values are whatever was in memory",
    "fwdad.tangents.straight.with_derivative_of": "differences cannot tell: test_straight.py",
    **{
        f"_hypergeom_{name}": "all arguments are counts: test_special_distributions.py"
        for name in ("pmf", "cdf", "sf")
    },
    "scipy.ndimage.maximum_filter": "test_scipy_rank_filters.py calls it",
    "scipy.ndimage.maximum_filter1d": "test_scipy_rank_filters.py calls it",
    "scipy.ndimage.median_filter": "test_scipy_rank_filters.py calls it",
    "scipy.ndimage.minimum_filter": "test_scipy_rank_filters.py calls it",
    "scipy.ndimage.minimum_filter1d": "test_scipy_rank_filters.py calls it",
    "scipy.ndimage.percentile_filter": "test_scipy_rank_filters.py calls it",
    "scipy.ndimage.rank_filter": "test_scipy_rank_filters.py calls it",
    "scipy.interpolate._build_evaluation_coefficients": "test_scipy_radial.py calls it as users do",
    "scipy.interpolate._build_system": "test_scipy_radial.py calls it as users do",
    "scipy.interpolate._ndim_coords_from_arrays": "test_scipy_grids.py calls it as users do",
    "scipy.interpolate.evaluate": "it writes: splines call it in test_scipy_piecewise.py",
    "scipy.interpolate.evaluate_linear_2d": "test_scipy_grids.py calls it as users do",
    "scipy.interpolate.find_indices": "test_scipy_grids.py calls it as users do",
    "scipy.interpolate.fix_continuity": "it writes: splines call it in test_scipy_piecewise.py",
    "scipy.interpolate.integrate": "it writes: splines call it in test_scipy_piecewise.py",
    "dgesv": "check_frule takes one result of several: test_scipy_radial.py",
    "scipy.signal._local_maxima_1d": "test_scipy_signal.py calls it as users do",
    "scipy.signal._select_by_peak_distance": "test_scipy_signal.py calls it as users do",
    "scipy.signal.lfilter": "test_scipy_signal.py calls it as users do",
    "scipy.signal.sosfilt": "test_scipy_signal.py calls it as users do",
    **dict.fromkeys(
        [f"scipy.interpolate.{name}" for name in (
            "evaluate_spline", "evaluate_all_bspl", "_coloc", "data_matrix", "find_interval",
        )],
        "splines call it in test_scipy_splines.py",
    ),
    **dict.fromkeys(["sgbsv", "dgbsv", "cgbsv", "zgbsv"], "test_gbsv calls it"),
    **dict.fromkeys(
        ["scipy.interpolate._lsq_solve_qr", "curfit", "fpcurf0", "fpcurf1", "fpcurfm1", "fpchec",
         "splev", "splder", "spalde", "splint", "regrid_smth", "bispev", "parder", "bispeu",
         "pardeu"],
        "test_scipy_fitpack.py calls it as users do",
    ),
}  # fmt: skip
# function: why it is linear, or listed, and has no transpose
WITHOUT_TRANSPOSE = {
    "numpy.shape": "a query: its result is no tangent",
    "numpy.ndim": "a query: its result is no tangent",
    "numpy.size": "a query: its result is no tangent",
}
# function: where its transpose is tested, having no rule to make a case of
TESTED_APART = {
    operator.getitem: "test_transposes.py",
    Chunk.astype: "test_transposes.py",
    expm_derivative: "test_scipy_linalg.py",
    logm_derivative: "test_scipy_linalg.py",
    sparse_solution: "test_sparse.py",
    _pulled: "test_reverse_rules.py",
}


@pytest.fixture(scope="module")
def rules():
    """Every rule, those registered by name included."""
    import_pending()
    package = str(Path(fwdad.__file__).parent)  # other tests register rules of their own
    return [rule for rule in RULES.values() if rule.origin.startswith(package)]


@pytest.fixture(scope="module")
def cases():
    """The rows of the CASES tables beside this file, by function."""
    found = {}
    for path in sorted(HERE.glob("*.py")):
        if path.stem in ("test_registry", "__init__"):
            continue
        module = importlib.import_module(f"tests.rules.{path.stem}")
        for case in getattr(module, "CASES", ()):
            found.setdefault(case.function, []).append(case)
    return found


def excused(name, table):
    return any(name == entry or name.startswith(f"{entry}.") for entry in table)


def without_case(rules, cases):
    return [
        f"{rule.name} ({rule.kind}, {rule.origin})"
        for rule in rules
        if rule.function not in cases and not excused(rule.name, WITHOUT_CASE)
    ]


def test_every_rule_has_a_case(rules, cases):
    assert without_case(rules, cases) == []


def test_a_rule_without_a_case_is_found(cases):
    def planted(x):
        return x

    frule(planted)(lambda primals, tangents: (primals[0], tangents[0]))
    rule = RULES.pop(planted)
    (found,) = without_case([rule, find_rule(np.sin)], cases)
    assert "planted (frule," in found
    assert "test_registry.py" in found


def test_everything_linear_has_a_transpose(rules):
    linear = {(rule.function, k) for rule in rules for k in rule.linear_argnums}
    missing = {
        f"{function_name(f)}, argument {k}" for f, k in linear if k not in TRANSPOSES.get(f, {})
    }
    missing |= {f"{function_name(f)}, in the closed list" for f in listed() if f not in TRANSPOSES}
    assert sorted(m for m in missing if not excused(m.split(",")[0], WITHOUT_TRANSPOSE)) == []


def test_every_transpose_has_a_case(cases):
    missing = [
        f"{function_name(f)}, argument {k}"
        for f, known in TRANSPOSES.items()
        for k in known
        if f not in TESTED_APART
        and not (getattr(f, "__module__", None) or "").startswith("tests.")  # of other tests
        and k <= last_position(f)
        and not any(k in getattr(case, "linear", ()) for case in cases.get(f, ()))
    ]
    assert missing == []


def last_position(function):
    """The last position that a case can be asked for: any number of operands needs three."""
    rule = find_rule(function)
    if rule is None or not rule.binder.variadic_active:
        return 32
    return len(rule.binder.primals) + 2


def test_internal_code_of_scipy_has_a_shape_rule(rules):
    """Or it is listed as pure, because it checks lengths itself: samples are of any length."""
    internal = [rule.pure or f for f, rule in RULES.items() if trusts_lengths(f)]
    assert internal
    assert [function_name(f) for f in internal if f not in BY_SHAPE] == []


def test_excuses_are_needed(rules, cases):
    names = {rule.name for rule in rules if rule.function not in cases}
    for entry in WITHOUT_CASE:
        assert any(excused(name, [entry]) for name in names), f"{entry} needs no excuse"
    for function in TESTED_APART:
        assert function in TRANSPOSES
