"""Comparison of results that should have the same structure, shapes and numbers."""

import numpy as np
from numpy.testing import assert_allclose


def assert_alike(found, wanted, rtol=1e-12, atol=1e-13):
    if isinstance(wanted, (tuple, list)):
        assert isinstance(found, type(wanted)), (found, wanted)
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            assert_alike(a, b, rtol, atol)
    elif isinstance(wanted, dict):
        assert isinstance(found, dict)
        assert list(found) == list(wanted)
        for key in wanted:
            assert_alike(found[key], wanted[key], rtol, atol)
    elif isinstance(wanted, str) or wanted is None:
        assert found == wanted
    else:
        assert np.shape(found) == np.shape(wanted), (found, wanted)
        assert np.iscomplexobj(found) == np.iscomplexobj(wanted), (found, wanted)
        assert_allclose(np.asarray(found), np.asarray(wanted), rtol=rtol, atol=atol)
