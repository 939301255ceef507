"""What a traced program prints is, character by character, what Python prints."""

from collections import OrderedDict, namedtuple

import pytest

import fwdad
from fwdad.errors import UntraceableError

Point = namedtuple("Point", "u v")
ORIGIN = Point(1, 2.0)


def named_tuples(x, n):
    print(Point(3, 4), ORIGIN, [ORIGIN, 2], {"k": ORIGIN}, (1, (ORIGIN,)))
    print(Point(x, [x]), [Point(1, x)], Point(f"{x:.3f}", "b"))


def sequences(x, n):
    print((), [], (1,), [(x,)], {}, range(3), range(1, 7, 2), slice(1, 2))


def nested_formats(x, n):
    width = 3 * n
    print(f"{x:.{n}e}", f"{x!r:>{width}}", f"{n:{width}}", f"{f'{x}':>{width}}")
    print([f"{x:.{n}e}", (f"{x:.2f}",)], {"k": f"{x:.{n}f}"})


def text_in_a_text(x, n):
    text = f"<{x:.2f}>"
    print(f"{text:>12}|{text!r}", [text], "%s" % text)


@pytest.mark.parametrize("shown", [named_tuples, sequences, nested_formats, text_in_a_text])
@pytest.mark.parametrize("x", [1.0, 2.0, 3.25])
def test_is_as_python_prints_it(shown, x, capsys):
    def f(x, n):
        shown(x, n)
        return x * x

    f(x, 3)
    expected = capsys.readouterr().out
    fast = fwdad.jit(f, backend="numpy")
    for run in (
        fast,
        fwdad.grad(f),
        fwdad.grad(fast),
        lambda x, n: fwdad.jvp(f, x, 1.0, args=(n,)),
    ):
        run(x, 3)
        assert capsys.readouterr().out == expected


@pytest.mark.parametrize("shown", [named_tuples, nested_formats])
def test_compiled(shown, capsys):
    def f(x, n):
        shown(x, n)
        return x * x

    f(2.0, 3)
    expected = capsys.readouterr().out
    assert fwdad.jit(f)(2.0, 3) == 4.0
    assert capsys.readouterr().out == expected


def test_what_would_be_shown_as_another_class_is_refused():
    def f(x):
        print(OrderedDict(a=1))
        return x

    with pytest.raises(UntraceableError, match="is given an OrderedDict"):
        fwdad.jit(f, backend="numpy")(1.0)
