"""Fixtures that every test may ask for."""

import gc
import logging
import os
import tempfile
import zlib

import numpy as np
import pytest
from hypothesis import settings

from fwdad.codegen.numba_support import CHECK_BOUNDS
from fwdad.core import fallbacks
from fwdad.rules.core.adjoints import TRANSPOSES
from fwdad.rules.core.define import frule
from fwdad.rules.core.registry import RULES
from tests import tiers

# how long an example takes says how busy the machine is, and which one is the first to be lifted
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# what a test run compiles is its own; tests/codegen/test_disk_cache.py has directories of its own
os.environ["FWDAD_CACHE_DIR"] = ""
_CONFIG = tempfile.TemporaryDirectory(prefix="fwdad-tests-")
os.environ["XDG_CONFIG_HOME"] = _CONFIG.name  # and so is the key that signs it


def pytest_configure(config):
    config.add_cleanup(_CONFIG.cleanup)
    # late in a run, a look at all objects takes seconds: some tests ask for it, few others get it
    gc.set_threshold(*gc.get_threshold()[:2], 1000)


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items):
    tiers.mark_slow(items)


# a mistake of the library that a slower way would make good is raised, as it is for users who ask
os.environ["FWDAD_STRICT"] = "1"


@pytest.fixture
def rng(request):
    """A random generator seeded by the test's own name: no test depends on another's draws."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture
def young_heap():
    """``gc.collect()`` looks at what the test makes, not at all that the whole run has made."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="module")
def jax():
    """JAX in double precision, as a reference; the test is skipped where it is not installed."""
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield jax
    jax.config.update("jax_enable_x64", before)


class _Reports(logging.Handler):
    """Keeps what the library reports of mistakes, also of those that a test catches when raised."""

    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record)


_REPORTS = _Reports()
fallbacks.LOG.addHandler(_REPORTS)
fallbacks.LOG.setLevel(logging.DEBUG)  # with tracebacks


@pytest.fixture
def reports(monkeypatch):
    """What was reported in a test, for those that provoke a report; they take it out."""
    monkeypatch.setenv("FWDAD_STRICT", "0")
    return _REPORTS.records


def pytest_runtest_setup(item):
    """Where bounds are checked, the text and the speed of compiled code are others."""
    if CHECK_BOUNDS and item.get_closest_marker("fast_code"):
        pytest.skip("bounds are checked")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    """A test fails if a mistake of the library was made good by a slower way.

    One that asks for the backend of an extra that is not installed is skipped.
    """
    fallbacks.forget()
    _REPORTS.records.clear()
    try:
        found = yield
    except ImportError as error:
        if "Numba is not installed" not in str(error):
            raise
        pytest.skip(str(error))
    if _REPORTS.records:
        lines = "\n".join(logging.Formatter().format(r) for r in _REPORTS.records)
        pytest.fail(f"mistakes that were made good:\n{lines}", pytrace=False)
    return found


@pytest.fixture
def plant():
    """Register a rule for a fresh function, and take it away again."""
    planted = []

    def register(function, body, **options):
        frule(function, **options)(body)
        planted.append(function)
        return function

    yield register
    for function in planted:
        RULES.pop(function)
        TRANSPOSES.pop(function, None)
