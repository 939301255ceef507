"""Docstrings of the public names: numpydoc's sections, the parameters, examples that run."""

import ast
import doctest
import inspect
import re
import textwrap

import pytest

import fwdad
import fwdad.errors
import fwdad.reversible
import fwdad.scipy
import fwdad.testing

PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (fwdad, fwdad.errors, fwdad.reversible, fwdad.scipy, fwdad.testing)
    for name in module.__all__
    if not inspect.ismodule(getattr(module, name))
}
FUNCTIONS = {name: x for name, x in PUBLIC.items() if inspect.isfunction(x)}
CLASSES = {
    name: x
    for name, x in PUBLIC.items()
    if inspect.isclass(x) and not issubclass(x, (Exception, Warning))
}


def sections(docstring):
    """The text under each headline; what stands before the first one is under ``""``."""
    parts = re.split(r"^(\w+)\n-{3,}\n", inspect.cleandoc(docstring), flags=re.MULTILINE)
    return {"": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True))


def described(text):
    """The names that a section has entries for."""
    heads = [line.partition(" :")[0] for line in text.splitlines() if line[:1].strip()]
    return [name.strip().lstrip("*") for head in heads for name in head.split(",")]


def raises(function):
    """Whether a function's own body has a ``raise``."""
    body = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return any(isinstance(node, ast.Raise) for node in ast.walk(body))


def faults(function):
    """What the docstring of a function lacks."""
    known, wanted = sections(function.__doc__ or ""), inspect.signature(function).parameters
    if not known[""].strip():
        yield "no docstring"
    told = described(known.get("Parameters", ""))
    if sorted(told) != sorted(wanted):
        yield f"parameters are {sorted(wanted)}, described are {sorted(told)}"
    if function.__annotations__.get("return") != "None" and "Returns" not in known:
        yield "no section Returns"
    if raises(function) and "Raises" not in known:
        yield "no section Raises"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    assert list(faults(FUNCTIONS[name])) == []


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name):
    cls = CLASSES[name]
    known = sections(cls.__doc__ or "")
    if "Attributes" in known and "Parameters" not in known:  # not made by the user
        assert described(known["Attributes"])
    else:
        assert described(known["Parameters"]) == list(inspect.signature(cls).parameters)


@pytest.mark.parametrize("name", [name for name, x in PUBLIC.items() if not callable(x)])
def test_other_names_are_reported(name):
    assert (type(PUBLIC[name]).__doc__ or "").strip()


EXAMPLES = {
    test.name: test
    for x in (*FUNCTIONS.values(), *CLASSES.values())
    for test in doctest.DocTestFinder(recurse=False).find(
        x, globs=vars(inspect.getmodule(x)) | {"__name__": "__main__"}
    )
    if test.examples
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name):
    said = []
    done = doctest.DocTestRunner(verbose=False).run(EXAMPLES[name], out=said.append)
    assert done.failed == 0, "".join(said)
    assert done.attempted


def test_planted_faults_are_found():
    def planted(a, b):
        """Say something.

        Parameters
        ----------
        a, c : int
            Numbers.
        """
        if a > b:
            raise ValueError
        return a

    planted.__annotations__["return"] = "int"
    assert [text.split()[0] for text in faults(planted)] == ["parameters", "no", "no"]
