"""A directory for compiled code, and what the cache says of it."""

import importlib
import json
import logging

import pytest

import fwdad


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty directory for this process's entries, and one for the key that signs them."""
    monkeypatch.setenv("FWDAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def plain(programs):
    """What the programs return without compiled code, as JSON has it."""
    patch = pytest.MonkeyPatch()
    with patch.context() as p:
        p.setattr(fwdad, "jit", lambda f: f)
        return json.loads(json.dumps(programs.answers()))


@pytest.fixture(scope="session")
def programs():
    """The programs of these tests, which need Numba."""
    return importlib.import_module("tests.codegen.cached_programs")


@pytest.fixture
def count(programs, monkeypatch):
    """What the cache has said that it did, by its first word."""
    log, handler = logging.getLogger("fwdad.cache"), programs.Count()
    monkeypatch.setattr(log, "level", logging.DEBUG)
    log.manager._clear_cache()
    log.addHandler(handler)
    monkeypatch.setattr("fwdad.codegen.cache.disk_cache._TOLD", set())
    yield handler.words
    log.removeHandler(handler)


@pytest.fixture
def entry(folder, count, programs):
    """The file of one entry."""
    assert programs.call() == 7.5
    assert count == {"saved": 1}
    (path,) = folder.iterdir()
    count.clear()
    return path
