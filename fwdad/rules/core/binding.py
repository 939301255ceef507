"""Binding of a call's arguments to a rule: which are primals, which are options."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_EMPTY = inspect.Parameter.empty
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def parse_signature(text: str) -> inspect.Signature:
    """Read a signature written as text, such as ``"(a, b, /, *, axis=-1)"``."""
    namespace: dict[str, Any] = {"np": np}
    try:
        exec(f"def f{text}: ...", namespace)  # noqa: S102  (rule authors' own text)
    except SyntaxError as error:
        message = f"signature={text!r} is not a signature: write it as in '(a, b, /, *, axis=-1)'"
        raise ValueError(message) from error
    return inspect.signature(namespace["f"])


_AXES = {
    "axis", "axes", "axis1", "axis2", "source", "destination", "shift", "reps", "shape", "ind",
}  # fmt: skip
"""What NumPy takes an array for, where rules count with numbers and tuples."""


def _as_numbers(x: np.ndarray) -> Any:
    if x.dtype.kind not in "iu" or x.ndim > 1:
        return x
    return tuple(x.tolist()) if x.ndim else x.item()


class Binder:
    """Splits the arguments of a call into primals and options.

    ``argnums`` are the parameters that can be active, by default each one without a default;
    ``name`` is the function's name in errors.
    """

    def __init__(
        self, name: str, signature: inspect.Signature, argnums: Sequence[int | str] | None = None
    ) -> None:
        self.name = name
        parameters = list(signature.parameters.values())
        names = [p.name for p in parameters]
        if argnums is None:
            active = [
                p.name
                for p in parameters
                if p.default is _EMPTY and p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)
            ]
        else:
            far = [
                a for a in argnums if not isinstance(a, str) and not -len(names) <= a < len(names)
            ]
            if far:
                raise ValueError(f"{name}{signature} has no parameter at position {far[0]}")
            active = [a if isinstance(a, str) else names[a] for a in argnums]
        unknown = [a for a in active if a not in names]
        if unknown:
            raise ValueError(f"{name}{signature} has no parameter {unknown[0]!r}")
        self.signature = signature
        self.variadic = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
        self.accepts_any_option = any(p.kind is p.VAR_KEYWORD for p in parameters)
        self.primals = tuple(a for a in active if a != self.variadic)
        self.variadic_active = self.variadic in active
        self.positional = tuple(
            p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        )
        self.defaults = {
            p.name: p.default
            for p in parameters
            if p.default is not _EMPTY and p.kind not in _VARIADIC
        }
        self.options = tuple(
            p.name for p in parameters if p.kind not in _VARIADIC and p.name not in self.primals
        )
        self._simple = (
            self.variadic is None
            and self.positional[: len(self.primals)] == self.primals
            and all(o in self.defaults for o in self.options)
        )
        self._says_axes = name.startswith(("numpy.", "scipy.")) and not _AXES.isdisjoint(names)
        self.default_options = {o: self.defaults[o] for o in self.options if o in self.defaults}

    def are_all_primals(self, count: int) -> bool:
        """Whether so many positional arguments are the primals, and all options have defaults."""
        return self._simple and count == len(self.primals)

    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return ``(primals, options)``; raises TypeError as a wrong call would."""
        if self._simple and not kwargs and len(args) == len(self.primals):
            return args, dict(self.default_options)
        primals, values = self._split(args, kwargs)
        if self._says_axes:
            for key in _AXES.intersection(values):
                if type(values[key]) is np.ndarray:
                    values[key] = _as_numbers(values[key])
        return primals, values

    def _split(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        values = dict(self.defaults)
        extra: tuple[Any, ...] = ()
        if len(args) > len(self.positional):
            if self.variadic is None:
                raise TypeError(
                    f"{self.name}() takes {len(self.positional)} positional arguments "
                    f"but {len(args)} were given"
                )
            extra = args[len(self.positional) :]
        values.update(zip(self.positional, args, strict=False))
        by_position = set(self.positional[: len(args)])
        for key, value in kwargs.items():
            if key in by_position:
                raise TypeError(f"{self.name}() got multiple values for argument {key!r}")
            if key not in self.options and key not in self.primals and not self.accepts_any_option:
                raise TypeError(f"{self.name}() got an unexpected keyword argument {key!r}")
            values[key] = value
        missing = [p for p in (*self.primals, *self.options) if p not in values]
        if missing:
            raise TypeError(f"{self.name}() missing required argument {missing[0]!r}")
        primals = tuple(values.pop(p) for p in self.primals)
        if self.variadic_active:
            primals += extra
        elif extra:
            values[str(self.variadic)] = extra
        return primals, values

    def unbind(
        self, primals: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Put primals and options back into the arguments of one call."""
        if self._simple and len(primals) == len(self.primals):
            rest, args = dict(options), [*primals]
            for name in self.positional[len(primals) :]:
                if name not in rest:
                    break
                args.append(rest.pop(name))
            return tuple(args), rest
        values = dict(zip(self.primals, primals, strict=False))
        extra = primals[len(self.primals) :]
        values.update(options)
        args = []
        for name in self.positional:
            if name not in values:
                break
            args.append(values.pop(name))
        args.extend(extra)
        if self.variadic is not None and not self.variadic_active:
            args.extend(values.pop(self.variadic, ()))
        return tuple(args), values

    def primal_name(self, position: int) -> str:
        """The name of the primal at a position."""
        if position < len(self.primals):
            return self.primals[position]
        return f"{self.variadic}[{position - len(self.primals)}]"


class _UfuncBinder(Binder):
    """The binder of a ufunc, which calls its arguments x1, x2 and so on, unlike its documentation.

    SciPy's say there what they are: ``jv(v, z, out=None)``.
    """

    def __init__(self, function: np.ufunc, name: str, argnums: Any) -> None:
        names = ["x"] if function.nin == 1 else [f"x{k + 1}" for k in range(function.nin)]
        super().__init__(name, parse_signature(f"({', '.join(names)}, /)"), argnums)
        self._function = function

    def primal_name(self, position: int) -> str:
        """See :class:`Binder`."""
        own, count = self._function.__name__, self._function.nin
        for text in re.findall(rf"^\s*{own}\(([^)]*)", self._function.__doc__ or "", re.MULTILINE):
            names = [name.strip() for name in text.split(",")]
            names = names[:count]
            if len(names) < count or names == list(self.primals):  # of another function, or NumPy's
                continue
            if all(map(str.isidentifier, names)):
                return names[position]
        return super().primal_name(position)


def binder_for(
    function: Callable[..., Any],
    name: str,
    signature: str | None,
    argnums: int | str | Sequence[int | str] | None,
    *,
    late: bool = False,
) -> Binder:
    """Make the binder of a function, from its own signature or from one given as text.

    A late binder reads the signature on first use: many are never used.
    """
    if isinstance(argnums, (int, str)):
        argnums = (argnums,)
    if signature is not None:
        return Binder(name, parse_signature(signature), argnums)
    if isinstance(function, np.ufunc):
        return _UfuncBinder(function, name, argnums)
    return (_LateBinder if late else _bound_binder)(function, name, argnums)


def _bound_binder(
    function: Callable[..., Any], name: str, argnums: Sequence[int | str] | None
) -> Binder:
    return Binder(name, _own_signature(function, name), argnums)


def _own_signature(function: Callable[..., Any], name: str) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"the signature of {name} cannot be inspected: pass one, signature='(a, b, /, *, "
            "axis=-1)'"
        ) from error


class _LateBinder(Binder):
    """A binder that reads the function's signature on first use."""

    def __init__(
        self, function: Callable[..., Any], name: str, argnums: Sequence[int | str] | None
    ) -> None:
        self._given = (function, name, argnums)

    def __getattr__(self, attribute: str) -> Any:
        arguments = self.__dict__.get("_given")
        if arguments is None or attribute.startswith("__"):
            raise AttributeError(attribute)
        function, name, argnums = arguments
        Binder.__init__(self, name, _own_signature(function, name), argnums)
        self.__dict__.pop("_given", None)  # another thread may have been first
        return getattr(self, attribute)
