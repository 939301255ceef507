"""The collector of garbage rests during a first call, and is left as it was found."""

import gc

import numpy as np
import pytest

import fwdad
from fwdad.errors import UntraceableError


@pytest.fixture(params=[True, False])
def on(request):
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def test_a_first_call_leaves_it_as_it_was(on):
    seen = []

    def f(x):
        seen.append(gc.isenabled())
        return x * 2.0

    g = fwdad.jit(lambda x: np.sin(x) + 1.0, backend="numpy")
    assert g(0.0) == 1.0
    assert gc.isenabled() is on
    assert g(0.0) == 1.0
    assert gc.isenabled() is on
    with pytest.raises(UntraceableError):  # it appends to a list from outside
        fwdad.jit(f, backend="numpy")(1.0)
    assert gc.isenabled() is on
