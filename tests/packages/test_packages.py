"""Packages that nobody here wrote, differentiated as they are, against differences.

Each of them is right or refused in every mode, never wrong; README.md is the list. What is refused
names the user's line, the package's, and what can be done. They are installed by
`pip install -r tests/packages/requirements.txt`; a package that is not installed is left out.
"""

import importlib
import pkgutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
import tests.packages as here
from tests.differences import central_differences
from tests.packages.explained import unexplained

OTHERS = {"explained", "package_function", "table", "test_packages"}
FIELDS = [m.name for m in pkgutil.iter_modules(here.__path__) if m.name not in OTHERS]
CASES = [
    case
    for name in FIELDS
    for case in getattr(importlib.import_module(f"tests.packages.{name}"), "CASES", ())
]


def again(derivative, x):
    """What is found the third time: nothing that a call leaves behind changes the next."""
    derivative(x)
    derivative(x)
    return derivative(x)


MODES = {
    "jvp": lambda f, x: np.stack([fwdad.jvp(f, x, e)[1] for e in np.eye(x.size)], axis=-1),
    "forward": lambda f, x: fwdad.jacobian(f, x, mode="forward", chunk=2),
    "reverse": lambda f, x: again(lambda x: fwdad.jacobian(f, x, mode="reverse"), x),
    "jit": lambda f, x: again(fwdad.jit(lambda p: fwdad.jacobian(f, p, mode="reverse")), x),
}


def test_the_table_has_each_case():
    lines = Path(__file__).with_name("README.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("| ")][1:]
    assert sorted(f"{cells[0][2:]}: {cells[2]}" for cells in rows) == sorted(map(str, CASES))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.filterwarnings("ignore")
def test_right_or_refused(case, mode):
    try:
        f, x = case.make()
    except ImportError as error:
        pytest.skip(str(error))
    given = x.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = central_differences(f, x, least=1e-3)
        refused = case.refused.get(mode, case.refused.get("*"))
        if refused is not None:
            with pytest.raises(getattr(fwdad.errors, refused)) as caught:
                MODES[mode](f, x)
            assert not unexplained(caught.value)
            return
        found = MODES[mode](f, x)
    assert_allclose(found, expected, rtol=case.rtol, atol=case.atol)
    np.testing.assert_array_equal(x, given)
    assert np.any(expected)
