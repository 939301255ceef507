"""Fixtures that every test may ask for."""

import os
import zlib

import numpy as np
import pytest

# what a test run compiles is its own; tests/backends/test_cache.py has directories of its own
os.environ["FWDAD_CACHE_DIR"] = ""


@pytest.fixture
def rng(request):
    """A random generator seeded by the test's own name: no test depends on another's draws."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture(scope="session")
def jax():
    """JAX in double precision, as a reference; the test is skipped where it is not installed."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    return jax
