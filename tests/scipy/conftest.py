"""How the derivatives are run: as they are, or compiled from the second call on."""

import pytest

from fwdad.codegen.numba_support import have_numba
from fwdad.scipy import choice


@pytest.fixture(params=["as it is", "compiled", "without Numba"])
def way(request, monkeypatch):
    """Each way of running derivatives; all must have the same result."""
    if request.param == "compiled":
        if not have_numba():
            pytest.skip("Numba is not installed")
        monkeypatch.setattr(choice, "_COMPILING", 0.0)
        monkeypatch.setattr(choice, "_IMPORTING", 0.0)
        monkeypatch.setattr(choice, "_TRIED", 10**9)  # how fast they are is not asked here
    else:
        monkeypatch.setattr(choice, "_COMPILING", 1e9)
    if request.param == "without Numba":
        monkeypatch.setattr(choice, "have_numba", lambda: False)
    return request.param
