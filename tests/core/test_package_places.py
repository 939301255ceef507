"""Errors that arise in an installed package name the user's line, and the package's."""

import importlib
import pickle
import sys

import numpy as np
import pytest

import fwdad
from fwdad.errors import DualLeakError, MissingRuleError, UntraceableError, is_package_file

X = np.array([1.5, 2.5])
SOURCE = """\
import _placed_inner as inner

def rounded(x):
    return inner.deeper(x)

def halves(x):
    return inner.compiled(x)
"""
INNER = """\
import numpy as np

compiled = np.frompyfunc(lambda x: 0.5 * x, 1, 1)

def deeper(x):
    return x[:2] * np.zeros(int(x[0] * x[1])).size
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    home = tmp_path / "site-packages"
    home.mkdir()
    (home / "_placed.py").write_text(SOURCE, encoding="utf-8")
    (home / "_placed_inner.py").write_text(INNER, encoding="utf-8")
    monkeypatch.syspath_prepend(str(home))
    for name in ("_placed", "_placed_inner"):
        sys.modules.pop(name, None)
    yield importlib.import_module("_placed")
    for name in ("_placed", "_placed_inner"):
        sys.modules.pop(name, None)


WAYS = {
    "jvp": lambda f: fwdad.jvp(f, X, X),
    "forward": lambda f: fwdad.jacobian(f, X, mode="forward", chunk=1),
    "reverse": lambda f: fwdad.jacobian(f, X, mode="reverse"),
    "jit": lambda f: fwdad.jit(fwdad.jacfwd(f))(X),
    "trace": lambda f: fwdad.trace(f, X),
}
LINES = {
    "rounded": "return x[:2] * np.zeros(int(x[0] * x[1])).size",
    "halves": "return inner.compiled(x)",
}


CASES = [(name, way) for name in LINES for way in WAYS if (name, way) != ("rounded", "trace")]
"""A tape alone assumes an int, and holds it."""


@pytest.mark.parametrize(("name", "way"), CASES)
def test_both_lines(package, name, way):
    function = getattr(package, name)

    def f(x):
        y = x * 2.0
        return function(y)  # the user's line

    with pytest.raises((DualLeakError, MissingRuleError, UntraceableError)) as caught:
        WAYS[way](f)
    error = caught.value
    assert error.filename == __file__
    assert "# the user's line" in error.text
    assert is_package_file(error.inside.filename)
    assert error.inside.text.strip() == LINES[name]
    user, inner = str(error).index("# the user's line"), str(error).index(LINES[name])
    assert user < inner
    same = pickle.loads(pickle.dumps(error))
    assert str(same) == str(error)


def test_a_function_of_the_package_itself(package):
    with pytest.raises(UntraceableError) as caught:
        fwdad.trace(package.halves, X)  # the user's line
    assert "# the user's line" in caught.value.text
    assert caught.value.inside.text.strip() == LINES["halves"]


def test_the_users_own_errors_have_no_such_place():
    with pytest.raises(DualLeakError) as caught:
        fwdad.jvp(lambda x: int(x[0]) * x, X, X)
    assert caught.value.inside is None


def test_numpy_is_named_in_the_message_instead():
    assert is_package_file("/usr/lib/python3/dist-packages/scipy/linalg/basic.py")
    assert not is_package_file(np.__file__)
    assert not is_package_file(__file__)
    assert not is_package_file(fwdad.__file__)
