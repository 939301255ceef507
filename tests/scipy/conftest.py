"""How the derivatives are run: as they are, or compiled from the second call on."""

import math

import pytest

from fwdad.codegen.numba_support import have_numba
from fwdad.scipy import choice


@pytest.fixture(params=["as it is", "compiled", "without Numba"])
def way(request, monkeypatch):
    """Each way of running derivatives; all must have the same result."""
    if request.param == "without Numba":
        monkeypatch.setattr(choice, "have_numba", lambda: False)
    elif not have_numba() and request.param == "compiled":
        pytest.skip("Numba is not installed")
    assumed = {"compiling": math.inf}
    if request.param == "compiled":  # how fast that is is not asked here
        assumed = {"compiling": 0.0, "importing": 0.0, "tried": 10**9}
    with choice.assuming(**assumed):
        yield request.param
