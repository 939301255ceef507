"""How statements on fixed-point and logarithmic numbers are written out."""

from __future__ import annotations

import ast
from typing import Any

from fwdad.errors import FwdadError
from fwdad.reversible import numbers
from fwdad.reversible.kinds import Exact
from fwdad.reversible.numbers import Fixed, FixedNumber, Logarithmic, LogarithmicFormat
from fwdad.reversible.places import leaves, replaced, text


def constructed(w: Any, e: ast.expr) -> tuple[Any, type, ast.expr] | None:
    """Format, class and value, if an expression makes an exact number: ``F(0.0)``."""
    if not isinstance(e, ast.Call) or len(e.args) < 1:
        return None
    f = _outside(w, e.func)
    if isinstance(f, Fixed) and len(e.args) == 1 and not e.keywords:
        return f, FixedNumber, e.args[0]
    if f is Logarithmic:
        given = [*e.args[1:], *(k.value for k in e.keywords)]
        bits = ast.literal_eval(given[0]) if given else Logarithmic.BITS
        return LogarithmicFormat(bits), Logarithmic, e.args[0]
    return None


def _outside(w: Any, f: ast.expr) -> Any:
    """What a function's expression means in the world outside."""
    if leaves(f, set(w.env)):
        return None
    if isinstance(f, ast.Call) and _outside(w, f.func) is not Fixed:
        return None
    if not isinstance(f, (ast.Name, ast.Attribute, ast.Call)):
        return None
    try:
        return w.outside(f)
    except (NameError, AttributeError, FwdadError):
        return None


def read(w: Any, e: ast.expr) -> str:
    """An expression of values: what is kept of logarithmic numbers is no value."""
    if not any(isinstance(k, Exact) and k.is_log for k in w.env.values()):
        return text(e)
    found, shapes = w.parts(e)
    by = {text(m): m for m in shapes}
    for leaf, kind in found:
        if isinstance(kind, Exact) and kind.is_log:
            by[text(leaf)] = ast.parse(_value(w, text(leaf), kind), mode="eval").body
    return text(replaced(e, by))


def _value(w: Any, code: str, kind: Exact) -> str:
    return f"{w.given('value_of', numbers.value_of)}({code})" if kind.is_log else code


def kept(w: Any, e: ast.expr, kind: Exact) -> str:
    """What is kept of a value."""
    form, _, value = constructed(w, e) or (None, None, e)
    if form is None and _is_place(w, e, kind):
        return text(e)
    name = "log_of" if kind.is_log else "on_grid"
    function = getattr(numbers, name)
    if _is_number(value):
        number = ast.literal_eval(value)
        if kind.is_log and number == 0:
            return f"-{w.np}.inf"
        return repr(float(_of_constant(kind, number)))
    return f"{w.given(name, function)}({w.code(value)}, {kind.format.scale!r})"


def begin(w: Any, s: Any, kind: Exact) -> None:
    """A variable begins."""
    name, value = s.variable.name, inner(w, s.value)
    if w.checked and kind.is_log and not _is_place(w, value, kind) and not _is_number(value):
        code = w.code(value)
        w.line(f"if not {w.np}.all({code} >= 0.0):" if kind.is_array else f"if not {code} >= 0.0:")
        w.raise_it(s, f"the logarithmic number '{name}'", name, "'positive or zero'", code)
    code = kept(w, s.value, kind)
    w.line(f"{name} = {f'{w.np}.copy({code})' if kind.is_array else code}")
    if not _is_number(value):
        check_range(w, s, name, kind)


def _is_number(e: ast.expr) -> bool:
    try:
        return isinstance(ast.literal_eval(e), (int, float))
    except ValueError:
        return False


def _of_constant(kind: Exact, number: Any) -> Any:
    made = (
        kind.format(number)
        if isinstance(kind.format, Fixed)
        else Logarithmic(number, kind.format.bits)
    )
    return made.kept


def _is_place(w: Any, e: ast.expr, kind: Exact) -> bool:
    if not isinstance(e, (ast.Name, ast.Attribute, ast.Subscript)):
        return False
    found, _ = w.parts(e)
    return len(found) == 1 and text(found[0][0]) == text(e) and found[0][1].format_of == kind.format


def inner(w: Any, e: ast.expr) -> ast.expr:
    """The value from which an expression makes an exact number."""
    made = constructed(w, e)
    return e if made is None else made[2]


def update(w: Any, s: Any, op: str, kind: Exact) -> None:
    """``place op= value``."""
    place = text(s.place)
    if op not in ("*/" if kind.is_log else "+-"):
        message = f"'{place} {op}= ...' has no inverse: {place} is {_described(kind)}"
        raise w.refuse(message, s)
    given = w.kind_of_expression(s.value)
    if given.is_complex:
        message = f"'{text(s.value)}' is complex, and '{place}' real"
        raise w.refuse(message, s)
    if kind.is_log:
        _multiply(w, s, op, kind, given)
    else:
        on_grid = w.given("on_grid", numbers.on_grid)
        w.line(f"{place} {op}= {on_grid}({w.code(s.value)}, {kind.format.scale!r})")
    check_range(w, s, place, kind)


def _described(kind: Exact) -> str:
    if kind.is_log:
        return "a Logarithmic number, which is multiplied and divided only"
    return (
        f"a number of {kind.format!r}, whose products are rounded; fwdad.Logarithmic numbers are "
        "multiplied exactly, and an ancilla can hold a product"
    )


def _multiply(w: Any, s: Any, op: str, kind: Exact, given: Any) -> None:
    place, by = text(s.place), {"*": "times", "/": "over"}[op]
    exact = isinstance(given, Exact) and _is_place(w, s.value, kind)
    name = f"{by}_kept" if exact else by
    function = w.given(name, getattr(numbers, name))
    factor = w.names.fresh("factor")
    w.line(f"{factor} = {text(s.value) if exact else w.code(s.value)}")
    if w.checked:
        low = f"-{w.np}.inf" if exact else "0.0"
        test = f"({factor} > {low}) & ({factor} < {w.np}.inf)"
        if not given.is_array:
            test = f"{low} < {factor} < {w.np}.inf"
        w.line(f"if not {w.np}.all({test}):" if given.is_array else f"if not {test}:")
        shown = _value(w, factor, kind) if exact else factor
        what = f"a factor of the logarithmic number '{place}'"
        w.raise_it(s, what, text(s.value), "'a positive number'", shown)
    rest = "" if exact else f", {kind.format.scale!r}"
    target = f"{place}[...]" if kind.is_array else place
    w.line(f"{target} = {function}({place}, {factor}{rest})")


def check_range(w: Any, s: Any, place: str, kind: Exact) -> None:
    """Raise if a number has left its format."""
    if not w.checked:
        return
    limit = repr(kind.format.limit)
    if kind.is_array:
        inside = f"{w.np}.abs({place}) < {limit}"
        if kind.is_log:
            inside = f"({inside}) | ({place} == -{w.np}.inf)"
        w.line(f"if not {w.np}.all({inside}):")
    else:
        inside = f"abs({place}) < {limit}"
        if kind.is_log:
            inside = f"({inside} or {place} == -{w.np}.inf)"
        w.line(f"if not {inside}:")
    size = "the logarithm of a number" if kind.is_log else "a number"
    what = f"{size} of {kind.format!r}"
    w.raise_it(s, what, place, repr(f"less than {kind.format.limit:g}"), place)


def check_value(w: Any, s: Any, name: str, kind: Exact) -> None:
    """Raise if a variable that ends is not exactly what it must be."""
    expected = kept(w, s.value, kind)
    test = f"{name} != {expected}"
    w.line(f"if {w.np}.any({test}):" if kind.is_array else f"if {test}:")
    w.raise_it(
        s, f"ancilla '{name}'", name, _value(w, f"({expected})", kind), _value(w, name, kind)
    )


def back_multiply(w: Any, s: Any, op: str, kind: Exact) -> None:
    """Undo ``x *= e`` or ``x /= e``, and pull the cotangents back, which are those of values."""
    place, bar = text(s.place), w.bar(s.place)
    weight = w.names.fresh("weight")
    if op == "*":
        w.update(s, "/")
        w.line(f"{weight} = {bar} * {_value(w, place, kind)}")
        w.pulled(s.value, weight, kind.plain)
        w.line(f"{bar} *= {w.code(s.value)}")
    else:
        w.line(f"{weight} = {bar} * {_value(w, place, kind)} / ({w.code(s.value)})")
        w.update(s, "*")
        w.pulled(s.value, f"-{weight}", kind.plain)
        w.line(f"{bar} /= {w.code(s.value)}")


def same_space(kind: Any, other: Any) -> bool:
    """Whether cotangents of two kinds are the same numbers."""
    if kind == other:
        return True
    names = ("dtype", "ndim", "is_array")
    if not isinstance(kind, Exact) and not isinstance(other, Exact):
        return False
    return all(getattr(kind, n, None) == getattr(other, n, None) for n in names)


def refuse_kept(w: Any, s: Any, kinds: Any, what: str) -> None:
    """Refuse what would round exact numbers."""
    if any(isinstance(k, Exact) for k in kinds):
        message = f"{what} is for floats: what it returns is rounded for fixed-point numbers"
        raise w.refuse(message, s)
