"""The examples in the docstrings of the room run, those apart that need a peer."""

import doctest
import importlib
import pkgutil

import pytest

import fwdad.compat

MODULES = [module.name for module in pkgutil.walk_packages(fwdad.compat.__path__, "fwdad.compat.")]


def examples():
    for name in MODULES:
        module = importlib.import_module(name)
        for test in doctest.DocTestFinder(exclude_empty=True).find(module):
            if test.examples:
                yield test


EXAMPLES = {test.name: test for test in examples()}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name):
    said = []
    done = doctest.DocTestRunner(verbose=False).run(EXAMPLES[name], out=said.append)
    assert done.failed == 0, "".join(said)


def test_examples_are_found():
    assert len(EXAMPLES) >= 15
