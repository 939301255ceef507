"""``Tape``: a traced function, and whether what it assumes holds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fwdad.codegen.numpy_backend.source import compiled, numpy_source
from fwdad.core.version import version
from fwdad.display.html import folded, framed, mono, paragraph
from fwdad.display.words import file_in_words
from fwdad.errors import Location
from fwdad.frontend.arguments import Flattened, leaf_key
from fwdad.frontend.captures import Capture, fetch, found_again
from fwdad.frontend.pickled_tapes import begin, restore, state_of
from fwdad.frontend.results import Results
from fwdad.ir.clone import copied
from fwdad.ir.drawing.listing import listed
from fwdad.ir.drawing.picture import Drawing, drawn
from fwdad.ir.ops import Op, Program
from fwdad.ir.other_way import OtherWayError
from fwdad.ir.printer import show_program
from fwdad.ir.symbol import UNBOUND

_ANEW = "Trace the function again with these arguments"
WAY = "the program goes another way with them than in its example"


@dataclass(eq=False, repr=False)
class Tape:
    """A traced function: prints as readable lines, and is a function itself.

    It can be called, differentiated, given to :func:`jit`, called in traced functions, and pickled;
    copies of it are the tape itself.

    Attributes
    ----------
    program : Program
        The operations.
    captures : list of Capture
        What it reads beside its arguments.
    length_guards : list of tuple
        ``(input, axis, length)``: lengths that it assumes.
    equal_lengths : list of tuple
        ``(input, axis, input, axis)``: lengths that it assumes to be equal.
    value_guards : dict
        Inputs whose values it assumes.
    rows : bool or None
        Whether it assumes that all arrays among its inputs are C-contiguous, or that not all do.
    object_guards : list of tuple
        ``(place, object)``: functions that it assumes not to be replaced.
    rebuild : callable
        The value that f returns, from the program's results and the arguments' containers, which
        it changes as f does.
    key : hashable
        The structure and types of the arguments.
    split : int
        How many small arrays in loops became numbers.
    prints : bool
        Whether the function prints: output is not part of the tape.
    alone : frozenset of int
        Inputs that the program writes into, or of which a function that it differentiates writes
        into a copy: an array that shares memory with one would be another one, too.
    copied : frozenset of int
        Of these the inputs of which it would be seen if their copies did not lie as they do.
    cut : Cut or None
        Of a value and its reverse pass: what is needed to run them one after the other.
    follows : bool
        Whether it holds one way of a branch only: it raises ``OtherWayError`` on others.
    followed_at : Location or None
        Where it first does, in the user's code.
    catches : bool
        Whether the program catches what the tape raises: the function itself must run then.
    same_objects : list of tuple
        ``(place, place)``: places that it assumes to hold one array.
    kept : dict
        What others have made of it, for its next call.
    """

    program: Program
    captures: list[Capture]
    length_guards: list[tuple[int, int, int]]
    equal_lengths: list[tuple[int, int, int, int]]
    value_guards: dict[int, Any]
    object_guards: list[tuple[Any, Any]]
    rebuild: Results
    key: Any
    split: int = 0
    prints: bool = False
    alone: frozenset[int] = frozenset()
    copied: frozenset[int] = frozenset()
    cut: Any = None
    rows: bool | None = None
    follows: bool = False
    followed_at: Location | None = None
    catches: bool = False
    same_objects: list[tuple[Any, Any]] = field(default_factory=list)
    kept: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return show_program(self.program)

    def __copy__(self) -> Tape:
        return self  # as a function does

    def __deepcopy__(self, _memo: dict[int, Any]) -> Tape:
        return self

    def __reduce__(self) -> Any:
        return (begin, (Tape, version()), state_of(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        restore(self, state)

    @property
    def __name__(self) -> str:
        """The function's name."""
        return self.program.name

    def _repr_html_(self) -> str:
        head, lines = listed(self.program)
        assumed = list(self.assumptions())
        known = [folded(f"what it assumes ({len(assumed)})", *map(paragraph, assumed))]
        legend = "[?] is an axis of any length" if "?" in head else ""
        return framed(mono(head), lines, *known[: len(assumed)], note=legend)

    def assumptions(self) -> Iterator[str]:
        """What it was traced for beyond the types of its arguments, in words."""
        names = [v.name or f"input {k}" for k, v in enumerate(self.program.block.params)]
        for c in self.captures:
            yield f"{c.value.name} is read from outside, at each call"
        for k, axis, n in self.length_guards:
            yield f"axis {axis} of {names[k]} has length {n}"
        for k, axis, other, at in self.equal_lengths:
            yield f"axis {axis} of {names[k]} is as long as axis {at} of {names[other]}"
        for k, value in self.value_guards.items():
            yield f"{names[k]} is {value!r}"
        if self.follows:
            place = self.followed_at
            where = "" if place is None else f" at {file_in_words(place.filename)}:{place.line}"
            yield f"the program goes{where} as it does in the example"
        if self.rows is not None:
            yield "all arrays are C-contiguous" if self.rows else "not all arrays are C-contiguous"

    def leaves(self, arguments: list[Any]) -> list[Any]:
        """The program's inputs: leaves of the arguments, and what is captured now."""
        return [*arguments, *(c.fetch() for c in self.captures)] if self.captures else arguments

    def holds(self, leaves: list[Any]) -> bool:
        """Whether the tape's assumptions hold for its inputs now."""
        first = len(leaves) - len(self.captures)
        for c, leaf in zip(self.captures, leaves[first:], strict=True):  # what is there may change
            if leaf is UNBOUND or c.key != leaf_key(leaf):
                return False
        for k, axis, n in self.length_guards:
            if leaves[k].shape[axis] != n:
                return False
        for k, axis, other, at in self.equal_lengths:
            if leaves[k].shape[axis] != leaves[other].shape[at]:
                return False
        for k, value in self.value_guards.items():
            if leaves[k] != value:
                return False
        if self.rows is not None and self.rows is not lie_by_rows(leaves):
            return False
        return self.stands()

    def stands(self) -> bool:
        """Whether the functions that it calls, and names of one array, are those of the trace."""
        if not all(found_again(path, held) for path, held in self.object_guards):
            return False
        return all(fetch(a) is fetch(b) for a, b in self.same_objects)

    def aliased(self, leaves: list[Any]) -> bool:
        """Whether the program writes into one of two inputs that share memory: it may not then.

        Or into the copy of an input that does not lie as its copy does, where that is seen.
        """
        if self.lies_otherwise(leaves):
            return True
        written = [leaves[k] for k in self.alone if isinstance(leaves[k], np.ndarray)]
        arrays = [leaf for leaf in leaves if isinstance(leaf, np.ndarray)] if written else []
        return any(sum(np.may_share_memory(a, b) for b in arrays) > 1 for a in written)

    def lies_otherwise(self, leaves: list[Any]) -> bool:
        """Whether an input that is copied and written has another layout than its copy."""
        return not lie_by_rows([leaves[k] for k in self.copied])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the tape, without tracing again.

        Raises
        ------
        TypeError
            If the arguments have another structure or other types than the example, do not fulfil
            what the tape assumes, or lead another way through the program.
        """
        flat = Flattened(args, kwargs)
        leaves = self.leaves(flat.leaves)
        self.check(flat.key, leaves)
        try:
            return self.rebuild(self.numpy(*leaves), flat.containers)
        except OtherWayError as error:
            raise TypeError(self.misfit(f"{WAY} ({error})" if error.args else WAY)) from None

    def check(self, key: Any, leaves: list[Any]) -> None:
        """Raise ``TypeError`` for arguments of another kind, or inputs that it does not fit."""
        if key != self.key or not self.holds(leaves):
            raise TypeError(self.misfit())
        if self.aliased(leaves):
            raise TypeError(self.misfit("two of its arrays share memory, and it writes into one"))

    def again(self, flat: Flattened) -> Tape:
        """A copy for arguments that it fits, whose program can be rewritten."""
        if flat.key != self.key or not self.holds(self.leaves(flat.leaves)):
            raise TypeError(self.misfit())
        return replace(self, program=copied(self.program), kept={})

    @functools.cached_property
    def numpy(self) -> Callable[..., Any]:
        """The program as a function of its inputs, which NumPy runs."""
        return compiled(numpy_source(self.program))

    def misfit(self, why: str = "") -> str:
        """What is said of arguments that the tape was not traced for."""
        head = str(self).partition("\n")[0].removeprefix("tape ").rstrip(":")
        if why:
            return f"the tape {head} cannot run with these arguments: {why}. {_ANEW}"
        others = ["of other types, lengths or static values"]
        if self.captures or self.object_guards:
            others.append("or what it reads from outside was another kind of value")
        return f"the tape {head} was traced for arguments {' '.join(others)}. {_ANEW}"

    def draw(self) -> Drawing:
        """A picture of the tape: its lines, and the values that flow between them.

        Loops and branches are frames. Of a derivative in reverse mode the forward pass (blue) runs
        down, and the reverse pass (orange) beside it runs up; dotted arrows lead from what is kept
        to where it is used, dashed ones into the next iteration.

        Returns
        -------
        Drawing
            A notebook shows it, ``save("tape.svg")`` writes it (also png, pdf, dot). It is a
            ``str``, too: the source in Graphviz's language. The picture needs Graphviz's command
            ``dot``; without it a notebook says what to install.
        """
        return drawn(self.program)

    def count(self, kind: Any = Op) -> int:
        """How many operations of a kind there are, those inside loops and branches once."""
        return self.program.count(kind)


def lie_by_rows(leaves: list[Any]) -> bool:
    """Whether all arrays are C-contiguous, without gaps."""
    return all(x.flags.c_contiguous for x in leaves if isinstance(x, np.ndarray))
