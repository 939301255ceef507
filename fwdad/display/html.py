"""Pieces of HTML: the frame around an object, what folds, tables, bars and values.

Colours are those of the page (``currentColor``), so that they fit light and dark themes; two
accents tell forward from reverse. Whatever takes a text escapes it; a ``Html`` is taken as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from html import escape
from typing import Any

# (Jupyter aligns the cells of tables to the right by selectors with two classes, hence two here.)
_STYLE = """
.fwdad{color:var(--jp-content-font-color1,inherit);font-size:13px;line-height:1.45;
 --fwdad-rule:color-mix(in srgb,currentColor 22%,transparent);
 --fwdad-tint:color-mix(in srgb,currentColor 6%,transparent);
 --fwdad-forward:#2f86c9;--fwdad-reverse:#d9731a;max-width:1000px}
.fwdad-head{font-weight:600;border-bottom:1px solid var(--fwdad-rule);padding:2px 0 4px;
 margin:0 0 4px}
.fwdad-note{opacity:.72}
.fwdad-head .fwdad-note{font-weight:400;margin-left:.8em}
.fwdad .fwdad-mono,.fwdad.fwdad pre,.fwdad .fwdad-mono td{
 font-family:var(--jp-code-font-family,ui-monospace,SFMono-Regular,Menlo,Consolas,monospace);
 font-size:12px}
.fwdad.fwdad pre{margin:0;padding:0;background:none;color:inherit;line-height:1.5;overflow:visible;
 border:0;white-space:pre}
.fwdad details{margin:0}
.fwdad summary{cursor:pointer;list-style-position:inside}
.fwdad details.fwdad-part{margin:3px 0}
.fwdad details.fwdad-part>summary{padding:1px 0}
.fwdad details.fwdad-part>:not(summary){margin-left:1.1em}
.fwdad-code{max-width:900px;overflow-x:auto;padding:2px 0 2px 1.4em}
.fwdad-line{display:flex;gap:1.5em}
.fwdad-line>:first-child{flex:1 0 auto}
.fwdad-line>.fwdad-at{opacity:.6;text-align:right;flex:0 0 auto;min-width:8em;user-select:none}
.fwdad-line>.fwdad-at+.fwdad-at{min-width:var(--fwdad-at)}
.fwdad-line:hover{background:var(--fwdad-tint)}
.fwdad-block>summary{list-style:none;position:relative}
.fwdad-block>summary::-webkit-details-marker{display:none}
.fwdad-block>summary>span{display:block;line-height:1.5}
.fwdad-block>summary>span>.fwdad-line>:first-child::before{content:"\\25be";position:absolute;
 left:-1.2em;opacity:.7}
.fwdad-block:not([open])>summary>span>.fwdad-line>:first-child::before{content:"\\25b8"}
.fwdad-block[open]>summary .fwdad-folded{display:none}
.fwdad-folded{opacity:.7}
.fwdad-pass{border-left:3px solid var(--fwdad-rule);padding-left:.2em;margin:2px 0}
.fwdad-pass>.fwdad-name{font-size:11px;opacity:.85;padding-left:.6em}
.fwdad-forward{border-left-color:var(--fwdad-forward)}
.fwdad-reverse{border-left-color:var(--fwdad-reverse)}
.fwdad.fwdad pre.fwdad-prose{white-space:pre-wrap}
.fwdad-k{font-weight:600}.fwdad-c{opacity:.6;font-style:italic}
.fwdad.fwdad table{border-collapse:collapse;margin:2px 0;border:0;font-size:12px;table-layout:auto}
.fwdad.fwdad table th,.fwdad.fwdad table td{border:0;padding:1px 14px 1px 0;text-align:left;
 vertical-align:top;max-width:none;white-space:nowrap;background:none;color:inherit}
.fwdad.fwdad table th{font-weight:400;opacity:.72}
.fwdad.fwdad table .fwdad-number{text-align:right;min-width:6em;font-variant-numeric:tabular-nums}
.fwdad.fwdad table tbody tr:nth-child(n){background:none}
.fwdad.fwdad table tbody tr:nth-child(n):hover{background:var(--fwdad-tint)}
.fwdad-bar{display:inline-block;width:90px;height:.75em;background:var(--fwdad-tint)}
.fwdad-bar>span{display:block;height:100%;background:var(--fwdad-forward)}
.fwdad-beside{display:flex;flex-wrap:wrap;gap:0 2.5em}
.fwdad-beside>*{flex:0 1 auto;min-width:0;overflow-x:auto}
"""


class Html(str):
    """A text that is HTML already."""

    __slots__ = ()


def text(x: object) -> Html:
    """A value as HTML: what is HTML already as it is, anything else escaped."""
    return x if isinstance(x, Html) else Html(escape(str(x)))


def joined(parts: Iterable[object]) -> Html:
    """Fragments, one behind the other."""
    return Html("".join(map(text, parts)))


def tag(name: str, *parts: object, kind: str = "", title: str = "", style: str = "") -> Html:
    """An element with a class, and a text that is shown where the pointer rests."""
    attributes = f' class="{kind}"' if kind else ""
    if style:
        attributes += f' style="{escape(style)}"'
    if title:
        attributes += f' title="{escape(title)}"'
    return Html(f"<{name}{attributes}>{joined(parts)}</{name}>")


def framed(title: object, *parts: object, note: object = "") -> str:
    """What an object shows: a headline, with a note behind it, above its parts."""
    behind = joined([" ", tag("span", note, kind="fwdad-note")]) if note else ""
    head = tag("div", tag("span", title), behind, kind="fwdad-head")
    style = f"<style>{' '.join(_STYLE.split())}</style>"
    return str(Html(f'<div class="fwdad">{style}{joined([head, *parts])}</div>'))


def folded(summary: object, *parts: object, opened: bool = False, kind: str = "fwdad-part") -> Html:
    """A part that folds; only its summary is seen at first, unless it is ``opened``."""
    state = " open" if opened else ""
    head = tag("summary", summary)
    return Html(f'<details class="{kind}"{state}>{head}{joined(parts)}</details>')


def mono(x: object) -> Html:
    """A text in the font of code."""
    return tag("span", x, kind="fwdad-mono")


def noted(x: object) -> Html:
    """A text that stands back."""
    return tag("span", x, kind="fwdad-note")


def paragraph(*parts: object) -> Html:
    """A line of prose."""
    return tag("div", *parts)


def table(heads: Sequence[object], rows: Iterable[Sequence[object]]) -> Html:
    """A table; numbers are aligned to the right, and written with thousands apart."""
    cells = [list(row) for row in rows]
    numeric = [
        bool(cells) and all(isinstance(row[k], (int, float)) for row in cells)
        for k in range(len(cells[0]) if cells else 0)
    ]

    def line(name: str, row: Sequence[object]) -> Html:
        kinds = ("fwdad-number" if k < len(numeric) and numeric[k] else "" for k in range(len(row)))
        shown = (f"{x:,}" if type(x) is int else x for x in row)
        return tag("tr", *(tag(name, x, kind=kind) for x, kind in zip(shown, kinds, strict=True)))

    head = tag("thead", line("th", heads)) if any(heads) else Html("")
    return tag("table", head, tag("tbody", *(line("td", row) for row in cells)))


def facts(rows: Iterable[tuple[object, object]]) -> Html:
    """What is known of an object: a name and a value on each line."""
    return table((), ((noted(name), value) for name, value in rows))


def bar(fraction: float) -> Html:
    """A bar of which a part is filled."""
    width = round(100 * min(max(fraction, 0.0), 1.0), 1)
    return tag("span", tag("span", style=f"width:{width}%"), kind="fwdad-bar")


def beside(*parts: object) -> Html:
    """Parts beside one another, as far as there is room."""
    return tag("div", *(tag("div", part) for part in parts), kind="fwdad-beside")


def fields_framed(title: object, record: Any) -> str:
    """A dataclass: its fields, one on each line; flags and tuples in words."""
    return framed(
        title, facts((f.name, _in_words(getattr(record, f.name))) for f in fields(record))
    )


def _in_words(x: object) -> object:
    if isinstance(x, bool):
        return "yes" if x else "no"
    return ", ".join(map(str, x)) if isinstance(x, (tuple, list)) else x
