"""Derivatives of functions that have tapes, as those under ``jit`` do: who computes them, and how.

``drivers`` keep the tapes and stand above the evaluators, so they are registered here. What is
asked for at once, ``jvp(f, x, v)`` of such an f, is a question to a tape; calls that ask it again
with arguments of the same kind take a shortcut, which the function keeps.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

from fwdad.core.fallbacks import Untraced
from fwdad.core.tracebacks import as_public, leave
from fwdad.eager.lifting.reached import Carrier
from fwdad.rules.core.registry import when_changed

P = ParamSpec("P")
R = TypeVar("R")

_NOT_OF_TAPES = {"out": None, "progress": False}  # options with which the full function is called
_MOST = 256  # shortcuts of one function, or of one derivative
_REWRITTEN = 16

MISS: Final = object()
"""What a shortcut returns for other calls, and where its tape does not hold any more."""


def never(_args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    """The shortcut before there is one."""
    return MISS


class Question(NamedTuple):
    """``evaluate(f, argnums, args, kwargs, options)``, of which one result may be ``picked``.

    Where the answer is no result of the tape, ``opens`` makes of a specialisation and an example
    of its inputs a function of such inputs that returns the answer, or None; and this answer.
    """

    evaluate: Any
    f: Any
    argnums: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    options: dict[str, Any]
    picked: int | None = None
    opens: Callable[[Any, Any], tuple[Callable[..., Any] | None, Any]] | None = None

    def is_of(self, asked: Question) -> bool:
        """Whether this question, of places in a call, is the one that the call itself asks."""
        mine, given = [*self.args, *self.kwargs.values()], [*asked.args, *asked.kwargs.values()]
        return (
            self.evaluate is asked.evaluate
            and (self.argnums, self.options, self.picked, [*self.kwargs])
            == (asked.argnums, asked.options, asked.picked, [*asked.kwargs])
            and len(mine) == len(given)
            and all(getattr(p, "example", self) is x for p, x in zip(mine, given, strict=True))
        )


class AsGiven:
    """How a call is looked at; ``Parts`` of a text look at the places of what is given here."""

    items: Any = staticmethod(tuple)
    named: Any = staticmethod(dict)

    @staticmethod
    def static(x: Any) -> Any:
        """What the question depends on."""
        return x

    example = static


Ask = Callable[[Any, Any, Any, Any], "Question | None"]
"""``ask(f, args, kwargs, look)``: the question of a call of f or with f, looked at by ``look``."""


class Shortcuts:
    """The shortcuts of a function, or of a derivative of one: the latest of each way to ask."""

    def __init__(self) -> None:
        self.latest: dict[Any, Callable[..., Any]] = {}
        self.others: dict[Any, Callable[..., Any]] = {}
        self._rewritten = 0
        _ALL.add(self)

    def is_due(self, key: Any) -> bool:
        """Whether a shortcut should be written for calls of a kind, whose present one misses."""
        held = self.others.get(key)
        if held is None:
            return len(self.others) < _MOST
        return held is not never and self._rewritten < _REWRITTEN

    def enter(self, ask: Any, key: Any, shortcut: Callable[..., Any]) -> None:
        """Keep a shortcut for calls of a kind; ``never`` if there can be none."""
        self._rewritten += key in self.others  # what is read from outside has another shape now
        self.latest[ask] = self.others[key] = shortcut

    def forget(self) -> None:
        """Drop all: a function that their tapes call has another rule now."""
        self.latest.clear()
        self.others.clear()


def forget_shortcuts_to(tape: Any) -> None:
    """Drop the shortcuts that lead to a tape which is not kept any more."""
    for each in list(_ALL):
        for held in (each.latest, each.others):
            for key, shortcut in list(held.items()):
                known = getattr(shortcut, "tape", None)
                if known is not None and known() is tape:
                    held.pop(key, None)


_ALL: weakref.WeakSet[Shortcuts] = weakref.WeakSet()


@when_changed
def _forget() -> None:
    for each in list(_ALL):
        each.forget()


class ByTape(NamedTuple):
    """How ``evaluate(f, argnums, args, kwargs, options)`` is computed by the tapes of an f.

    ``or_else`` calls its last argument where there is no tape; ``known`` has a result for calls
    like an earlier one alone, else ``MISS``, and writes a shortcut for the next; ``written`` is the
    result of a transformed function that is given ``out``, or ``MISS``.
    """

    or_else: Callable[[Any, Any, Any, Any, Any, Any, Callable[[], Any]], Any]
    known: Callable[[Shortcuts, Any, Ask, Any, Any], Any]
    written: Callable[[Any, Any, Any], Any]


_BY_TAPE: dict[type, ByTape] = {}


def differentiated_by(cls: type, how: ByTape) -> None:
    """Register how functions of a class are differentiated."""
    _BY_TAPE[cls] = how


def by_tape(f: Any) -> ByTape | None:
    """What computes derivatives of a function, or of a derivative of one; None for most."""
    while hasattr(type(f), "key_with"):  # a derivative
        f = f.__wrapped__
    return _BY_TAPE.get(type(f))


_ASKED: dict[Any, Ask] = {}


def asked_by(f: Any, ask: Ask) -> None:
    """Register the question that a function of ours asks."""
    _ASKED[f] = ask


def answer(shortcuts: Shortcuts, f: Any, ask: Ask, args: Any, kwargs: Any) -> Any:
    """What a tape returns that an earlier call of this kind has made; ``MISS`` if there is none."""
    how = by_tape(f)
    return MISS if how is None else how.known(shortcuts, f, ask, args, kwargs)


class Evaluator:
    """How a public function ``g(f, x, *more, v, args=, kwargs=, argnums=, **options)`` asks.

    ``evaluate`` is traced; ``last`` is the parameter whose argument comes last, if there is one.
    Without that argument, or without x, there is no question.
    """

    def __init__(
        self,
        g: Any,
        evaluate: Any,
        last: str | None = None,
        absent: tuple[Any, ...] = (),
    ) -> None:
        self._parameters = inspect.signature(g)
        self._evaluate = evaluate
        self._last = last
        self._absent = absent
        defaults = {k: p.default for k, p in self._parameters.parameters.items()}
        self._argnums = defaults.get("argnums", 0)
        places = ("f", "x", "more", last, "args", "kwargs", "argnums")
        self._options = {k: d for k, d in defaults.items() if k not in (*places, *_NOT_OF_TAPES)}

    def __call__(self, _f: Any, args: Any, kwargs: Any, look: Any) -> Question | None:
        """The question of a call, if it is one."""
        try:
            given = self._parameters.bind(*args, **kwargs).arguments
        except TypeError:  # to be raised by the function itself
            return None
        if any(look.example(given.get(k, no)) is not no for k, no in _NOT_OF_TAPES.items()):
            return None
        wanted = [given.get(name, None) for name in ("x", self._last) if name is not None]
        if any(look.example(x) is none for x in wanted for none in self._absent):
            return None
        more = given.get("args", ())
        if not isinstance(look.example(more), tuple):
            return None
        last = wanted[1:]
        named = given.get("kwargs")
        named = {} if look.example(named) is None else look.named(named)
        options = {
            k: look.static(given[k]) if k in given else default
            for k, default in self._options.items()
        }
        argnums = look.static(given["argnums"]) if "argnums" in given else self._argnums
        first = (wanted[0], *given.get("more", ()))
        return Question(
            self._evaluate, given["f"], argnums, (*first, *look.items(more), *last), named, options
        )


class Captured:
    """A call of one of our functions that has not been made, or a part of its result."""

    def __init__(self, f: Any, args: Any, kwargs: Any, picked: int | None = None) -> None:
        self.f = f
        self.args = args
        self.kwargs = kwargs
        self.picked = picked

    def __iter__(self) -> Any:
        return (Captured(self.f, self.args, self.kwargs, k) for k in range(2))

    def __getitem__(self, _k: Any) -> None:
        """A part of a part, which is no question."""


def question_of(found: Any, look: Any) -> Question | None:
    """The question that a :class:`Captured` call asks; None for anything else."""
    if type(found) is not Captured or found.f not in _ASKED:
        return None
    question = _ASKED[found.f](None, found.args, found.kwargs, look)
    return None if question is None else question._replace(picked=found.picked)


def at_once(
    evaluate: Any,
    last: str | None = None,
    absent: tuple[Any, ...] = (None,),
    kind: Callable[..., Ask] = Evaluator,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make an evaluator public, and let it ask the tapes of a function that has some.

    A call of a kind that has been asked before takes a shortcut: it is not even bound to the
    evaluator's parameters. See :func:`public` for the exceptions, and :class:`Evaluator`.
    """

    def decorate(g: Callable[P, R]) -> Callable[P, R]:
        ask = kind(g, evaluate, last, absent)
        # in g's namespace there are none of these
        leaving, carrier, nothing, find, miss, untraced = (
            leave, Carrier, never, answer, MISS, Untraced,
        )  # fmt: skip

        def door(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                if args and isinstance(args[0], carrier):
                    f: Any = args[0]
                    shortcuts = f.shortcuts
                    if shortcuts is not None:
                        try:
                            y = shortcuts.latest.get(ask, nothing)(args, kwargs)
                            if y is miss:
                                y = find(shortcuts, f, ask, args, kwargs)
                        except Exception as error:  # noqa: BLE001  (reported, or raised again)
                            with untraced(f, error).instead():
                                return g(*args, **kwargs)
                        if y is not miss:
                            return y
                return g(*args, **kwargs)
            except BaseException as error:
                leaving(error)
                raise

        function = as_public(door, g)
        _ASKED[function] = ask
        return function

    return decorate
