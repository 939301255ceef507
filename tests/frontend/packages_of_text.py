"""Installed packages that a test writes: what is traced inside of them, and what Python does."""

import linecache
import sys
import types

import numpy as np


def package_of(text, name, monkeypatch):
    """A module of an installed package with this source."""
    made = types.ModuleType(name)
    made.__file__ = f"/usr/lib/python3/site-packages/{name}.py"
    made.np = np
    exec(compile(text, made.__file__, "exec"), vars(made))
    lines = text.splitlines(keepends=True)
    monkeypatch.setitem(linecache.cache, made.__file__, (len(text), None, lines, made.__file__))
    monkeypatch.setitem(sys.modules, name, made)
    return made
