"""Source as HTML: the same text, with blocks that fold."""

import ast
import inspect
import re
import textwrap

from fwdad.display import source, text
from tests.display.reading import read

EXAMPLE = '''\
def f(x, n):
    """A loop: with a branch."""
    for k in range(n):  # for each
        if x > 1 and k < 2:
            x = x - "if: <b>".count("i")
        else:
            x = 2

    return x
'''


def test_the_text_stays():
    for code in (EXAMPLE, inspect.getsource(textwrap), inspect.getsource(source)):
        page = read(source.listing(source.plain_lines(code), few=10**6))
        assert re.sub(r"  … \d+ lines?$", "", page.text, flags=re.MULTILINE) == code


def test_every_block_folds():
    page = read(source.listing(source.plain_lines(EXAMPLE)))
    blocks = (ast.FunctionDef, ast.For, ast.If)
    found = sum(isinstance(node, blocks) for node in ast.walk(ast.parse(EXAMPLE)))
    assert page.count("details") == found + 1  # and `else`
    assert all("open" in a for tag, a in page.elements if tag == "details")
    long = read(source.listing(source.plain_lines(EXAMPLE), few=3))
    opened = ["open" in a for tag, a in long.elements if tag == "details"]
    assert opened == [True, False, False, False]  # the function, but no block in it
    assert "for k in range(n):  # for each  … 5 lines" in long.text


def test_keywords_and_comments_are_marked_outside_of_strings():
    shown = source.highlighted('if a == "if # no":  # yes')
    page = read(shown)
    kinds = [a.get("class") for _, a in page.elements]
    assert kinds == ["fwdad-k", "fwdad-c"]
    assert page.text == 'if a == "if # no":  # yes'


def test_names_tell_their_types():
    page = read(source.highlighted("x.y = y + x", {"x": "float", "y": "<int>"}.get))
    assert [a["title"] for _, a in page.elements] == ["x: float", "y: <int>", "x: float"]


def test_groups_have_their_names():
    lines = [
        source.Line("a = 1", group="forward"),
        source.Line("for _ in b:", group="forward"),
        source.Line("    c = 2", group="reverse"),  # inside: it belongs to its block
        source.Line("d = 3", kept="float", place="In[1]:3", origin="d = a", group="reverse"),
        source.Line("return d"),
    ]
    page = read(source.listing(lines))
    kinds = [a["class"] for _, a in page.elements if "fwdad-pass" in a.get("class", "")]
    assert kinds == ["fwdad-pass fwdad-forward", "fwdad-pass fwdad-reverse"]
    assert page.text.count("forward pass") == page.text.count("reverse pass") == 1
    assert "d = 3  float  In[1]:3" in page.text
    assert "d = a" in {a.get("title") for _, a in page.elements}


def test_texts_are_strings_that_show_as_they_are():
    said = text.Text("one\ntwo < 3")
    assert said == "one\ntwo < 3"
    assert repr(said) == "one\ntwo < 3"
    assert read(said._repr_html_()).text.endswith("one\ntwo < 3")
    assert "for k in range(n):" in read(text.SourceText(EXAMPLE)._repr_html_()).text
