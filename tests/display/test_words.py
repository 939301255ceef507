"""Names of files, functions and values: the same in each run."""

import functools
import types
from pathlib import Path

import numpy as np
import pytest

import fwdad
from fwdad.display.words import (
    counted,
    file_in_words,
    function_in_words,
    signature_in_words,
    value_in_words,
)


def test_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert file_in_words(str(tmp_path / "a" / "b.py")) == str(Path("a", "b.py"))
    assert file_in_words("/elsewhere/b.py") == "/elsewhere/b.py"
    assert file_in_words("<string>") == "<string>"


def test_cells_of_a_notebook(monkeypatch):
    """As IPython's compiler knows them: by the number of their prompt."""
    compiler = pytest.importorskip("IPython.core.compilerop").CachingCompiler()
    filename = compiler.cache("x = 1\n", number=7)
    shell = types.SimpleNamespace(compile=compiler)
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    assert file_in_words(filename) == "In[7]"
    assert file_in_words("/elsewhere/b.py") == "/elsewhere/b.py"


def loss(x, *, n=3):
    return x**n


class Model:
    def __call__(self, x):
        return x


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (loss, "loss"),
        (np.sin, "sin"),
        (lambda x: x, "<lambda>"),
        (fwdad.grad(loss), "fwdad.grad of loss"),
        (fwdad.grad(fwdad.jit(loss)), "fwdad.grad of fwdad.jit of loss"),
        (functools.partial(loss, n=2), "functools.partial(<function loss>, n=2)"),
    ],
)
def test_functions(f, words):
    assert function_in_words(f) == words


def test_objects_that_are_called():
    assert "0x" not in function_in_words(Model())
    assert "Model" in function_in_words(Model())


def test_signatures():
    assert signature_in_words(loss) == "(x, *, n=3)"
    assert signature_in_words(dict.get) == "(self, key, default=None, /)"
    assert signature_in_words(type) == "(…)"
    assert "0x" not in signature_in_words(functools.partial(loss, n=Model()))


def test_values():
    assert value_in_words(np.zeros((2, 3))) == "float64 of shape (2, 3)"
    assert value_in_words(1.0) == "float"
    assert value_in_words(np.float32(1.0)) == "float32"


def test_counts():
    assert [counted(n, "tape") for n in (0, 1, 2, 1000)] == [
        "0 tapes",
        "1 tape",
        "2 tapes",
        "1,000 tapes",
    ]
