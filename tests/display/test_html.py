"""The pieces of HTML: escaped, balanced, and nothing but HTML and styles."""

from dataclasses import dataclass

import pytest

from fwdad.display import html
from tests.display.reading import read

NASTY = "<script>alert(\"x\")</script> & 'y'"


@pytest.mark.parametrize(
    "made",
    [
        html.framed(NASTY, NASTY, note=NASTY),
        html.folded(NASTY, NASTY),
        html.table((NASTY,), [(NASTY,)]),
        html.facts([(NASTY, NASTY)]),
        html.tag("p", NASTY, title=NASTY),
        html.beside(NASTY, html.mono(NASTY), html.noted(NASTY)),
        html.paragraph(NASTY),
    ],
)
def test_texts_are_escaped(made):
    page = read(made)
    assert page.count("script") == 0
    assert NASTY in page.text
    for _, attributes in page.elements:
        assert attributes.get("title", NASTY) == NASTY


def test_pieces_are_taken_as_they_are():
    inner = html.tag("b", "1 < 2")
    assert html.tag("p", inner, " & 3") == "<p><b>1 &lt; 2</b> &amp; 3</p>"


def test_the_reader_refuses_what_is_not_closed():
    with pytest.raises(AssertionError):
        read("<p><b>bold</p>")


def test_numbers_of_a_table_are_aligned_and_grouped():
    page = read(html.table(("bytes", "line"), [(1234567, "a"), (89, "b")]))
    cells = [(a.get("class"), t) for t, a in page.elements if t in ("td", "th")]
    assert cells == [
        ("fwdad-number", "th"),
        (None, "th"),
        *[("fwdad-number", "td"), (None, "td")] * 2,
    ]
    assert "1,234,567" in page.text


@pytest.mark.parametrize(("fraction", "width"), [(0, "0"), (0.5, "50.0"), (1, "100"), (7, "100")])
def test_a_bar_is_as_long_as_its_part(fraction, width):
    (_, (_, inner)) = read(html.bar(fraction)).elements
    assert float(inner["style"].removeprefix("width:").removesuffix("%")) == float(width)


def test_fields_of_any_record():
    @dataclass
    class Found:
        sure: bool
        names: tuple[str, ...]
        reason: str

    page = read(html.fields_framed("found", Found(True, ("a", "b"), "1 < 2")))
    assert page.text == "foundsureyesnamesa, breason1 < 2"
    assert page.count("tr") == 3
