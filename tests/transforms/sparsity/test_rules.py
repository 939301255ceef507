"""The pattern of every function with a rule, at the cases of its rule: never less than it has."""

import importlib
import warnings
from pathlib import Path

import numpy as np
import pytest

import fwdad
from fwdad.errors import FwdadError
from tests.rules.case import Case

MODULES = sorted(path.stem for path in Path(__file__).parents[2].glob("rules/test_*.py"))


def cases_of(module):
    """The cases of a module's tables, each once."""
    tables = [x for x in vars(module).values() if isinstance(x, list)]
    found = {id(case): case for table in tables for case in table if isinstance(case, Case)}
    return list(found.values())


def functions_of(case):
    """The function with one of its real arguments free, and that argument."""
    for k, x in enumerate(case.args):
        if isinstance(x, float) or (isinstance(x, np.ndarray) and x.dtype.kind == "f"):
            before, after = case.args[:k], case.args[k + 1 :]
            yield lambda x, b=before, a=after: case.function(*b, x, *a, **case.options), x


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_cases(name):
    module = importlib.import_module(f"tests.rules.{name}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in cases_of(module):
            for f, x in functions_of(case):
                check(case, f, x)


def check(case, f, x):
    y = f(x)
    if not isinstance(y, (np.ndarray, float, np.inexact)) or np.asarray(y).dtype.kind not in "fc":
        return
    try:
        J = fwdad.jacobian(f, x, mode="forward")
    except FwdadError:  # there is no derivative with respect to this one
        return
    entries = np.reshape(J, (np.size(y), np.size(x))) != 0
    for kind in ("global", "local"):
        try:
            pattern = fwdad.jacobian_sparsity(f, x, kind=kind).toarray()
        except FwdadError:  # it cannot be traced
            continue
        if pattern.shape == entries.shape:
            assert not np.any(entries & ~pattern), (case, kind)
