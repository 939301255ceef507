"""Sparsity patterns of Jacobians and Hessians, found from a function's tape."""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass, field
from types import MethodType
from typing import Any, Literal

import numpy as np

from fwdad.colouring.pattern import SparsityPattern
from fwdad.drivers.executable import Runner
from fwdad.drivers.jitted_function import Jitted
from fwdad.drivers.sparse.sets import hessian_pattern, jacobian_pattern
from fwdad.drivers.tape_cache import on_copies
from fwdad.eager.build import unseen
from fwdad.eager.calls.dispatch import call
from fwdad.errors import UnsupportedTypeError, UntraceableError, message_of, place_of
from fwdad.evaluation.arguments import argument_numbers
from fwdad.evaluation.signatures import Function
from fwdad.frontend.arguments import EVERY, Flattened
from fwdad.frontend.captures import fetch
from fwdad.frontend.tape import Tape
from fwdad.frontend.trace import trace_flat
from fwdad.ir.symbol import UNBOUND
from fwdad.rules.core.registry import function_name
from fwdad.tangents.alike import alike
from fwdad.tangents.plain import plain
from fwdad.transforms.passes import inline
from fwdad.transforms.sparsity.cells import UNKNOWN, Cell, UnstructuredError
from fwdad.transforms.sparsity.graph import Graph
from fwdad.transforms.sparsity.interpreter import Interpreter

Kind = Literal["global", "local"]

_KEPT = 64
_FULL_AT_MOST = 1_000_000
"""Entries of a pattern that stands for one that cannot be found."""
_LOCK = threading.Lock()


@dataclass(eq=False)
class Question:
    """What is asked: the pattern of the Jacobian, or of the Hessian, with respect to an argument.

    With ``has_aux`` f returns the value and something else.
    """

    f: Function
    argnum: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    hessian: bool = False
    has_aux: bool = False

    def __post_init__(self) -> None:
        number = argument_numbers(self.argnum)
        if not isinstance(number, int):
            raise UnsupportedTypeError(
                "a sparsity pattern is with respect to one argument: argnums is an int"
            )
        self.argnum = number % len(self.args)
        self.f = self.f.__wrapped__ if type(self.f) is Jitted else self.f
        self.x = plain(self.args[self.argnum])
        if not isinstance(self.x, (np.ndarray, float, complex, np.inexact)):
            raise UnsupportedTypeError(
                "a sparsity pattern is with respect to one array: let f take one vector "
                "(fwdad.ravel makes one, and takes it apart)"
            )

    @property
    def key(self) -> Any:
        """What an answer depends on, besides the function and its inputs."""
        return self.argnum, self.hessian, self.has_aux, np.shape(self.x)


@dataclass(eq=False)
class _Answer:
    """A pattern, and what it holds for: a tape, and the values of ints among its inputs."""

    f: Function
    key: Any
    flat_key: Any
    tape: Tape
    pattern: SparsityPattern
    ints: dict[int, Any] = field(default_factory=dict)

    def is_of(self, question: Question, flat: Flattened) -> bool:
        """Whether it is the answer to another question, too."""
        methods = isinstance(self.f, MethodType) and self.f == question.f
        if not (self.f is question.f or methods) or self.key != question.key:
            return False
        if self.flat_key != flat.key:
            return False
        leaves = self.tape.leaves(flat.leaves)
        if self.tape.aliased(leaves):
            return False
        return self.tape.holds(leaves) and all(
            np.array_equal(leaves[k], held) for k, held in self.ints.items()
        )


_ANSWERS: list[_Answer] = []
"""The latest, the most recent last."""


def pattern_of(question: Question) -> SparsityPattern:
    """A pattern that holds for every x of this shape, found once.

    That of a function that cannot be traced is full, as long as its matrix is no large one.
    """
    try:
        return _answer_to(question).pattern
    except UntraceableError as error:
        size = int(np.size(question.x))
        count = size if question.hessian else _count_by_a_run(question)
        if count is None or count * size > _FULL_AT_MOST:
            raise
        return _full(count, size, message_of(error))


def _count_by_a_run(question: Question) -> int | None:
    """How many elements the value has, by a run without effects; None if it is not one array."""
    with unseen() as run, run:
        y = call(question.f, *question.args, **question.kwargs)
    y = plain(y[0] if question.has_aux else y)
    return int(np.size(y)) if isinstance(y, (np.ndarray, float, complex, np.number)) else None


@functools.lru_cache(maxsize=16)
def _full(m: int, n: int, why: str) -> SparsityPattern:
    """A pattern of all entries, the same object for the same question: its plan is kept for it."""
    return SparsityPattern.of(np.ones((m, n), bool), (f"all of it: {why}",))


def _answer_to(question: Question) -> _Answer:
    """The answer to a question that holds for every x of this shape."""
    flat = Flattened(question.args, question.kwargs)
    with _LOCK:
        for answer in _ANSWERS:
            if answer.is_of(question, flat):
                return answer
    tape = _traced(question, flat)
    leaves = tape.leaves(flat.leaves)
    pattern = _found(question, tape, leaves, "global")
    ints = {k: alike(x) if isinstance(x, np.ndarray) else x
            for k, x in enumerate(leaves) if not _is_float(x)}  # fmt: skip
    answer = _Answer(question.f, question.key, flat.key, tape, pattern, ints)
    with _LOCK:
        _ANSWERS.append(answer)
        del _ANSWERS[:-_KEPT]
    return answer


def lasting_pattern(
    question: Question, examples: bool
) -> tuple[SparsityPattern, list[tuple[Any, Any]]]:
    """The same for a program, and what it must find unchanged at each run: places and contents.

    With ``examples`` some arguments are made up, of which only shapes and types count.
    """
    answer = _answer_to(question)
    leaves = answer.tape.leaves(Flattened(question.args, question.kwargs).leaves)
    captures = answer.tape.captures
    first = len(leaves) - len(captures)
    known = {*answer.ints, *answer.tape.value_guards}
    if examples and min(known, default=first) < first:
        raise UntraceableError(
            f"the sparsity pattern of {function_name(question.f)} depends on ints that it is "
            "given, and a traced function would not see them change: pass "
            "sparse=jacobian_sparsity(f, x), or put jit inside, jacobian(jit(f), x, sparse=True)"
        )
    places = [("contents" if k in known else "lengths", c.path)
              for k, c in enumerate(captures, first)]  # fmt: skip
    found = [(path, fetch(path)) for path in places]
    if any(held is UNBOUND for _, held in found):
        raise UntraceableError(
            f"the sparsity pattern of {function_name(question.f)} depends on an array of ints with "
            "more elements than can be compared at each run: pass sparse=jacobian_sparsity(f, x), "
            "or put jit inside, jacobian(jit(f), x, sparse=True)"
        )
    return answer.pattern, found


def local_pattern(question: Question) -> SparsityPattern:
    """The pattern at this x, with the branches and the indices that are taken there."""
    flat = Flattened(question.args, question.kwargs)
    tape = _traced(question, flat)
    return _found(question, tape, tape.leaves(flat.leaves), "local")


def _is_float(x: Any) -> bool:
    return np.asarray(x).dtype.kind in "fc"


def _traced(question: Question, flat: Flattened) -> Tape:
    """The tape of a function with the lengths of its arguments."""
    try:
        tape = trace_flat(question.f, flat, EVERY)
    except UntraceableError as error:
        raise UntraceableError(
            f"the sparsity pattern of {function_name(question.f)} is found from its tape, and it "
            f"cannot be traced: {message_of(error)}. Pass a pattern: sparse=pattern",
            place_of(error),
        ) from error
    inline(tape.program)
    return tape


def _found(question: Question, tape: Tape, leaves: list[Any], kind: Kind) -> SparsityPattern:
    """Interpret a tape on nodes."""
    if tape.aliased(leaves):
        raise UntraceableError(
            f"{function_name(question.f)} writes into one of two arrays that share memory"
        )
    size = int(np.size(question.x))
    graph = Graph(size, pairs=question.hessian)
    run = Interpreter(graph)
    given = []
    for leaf, on in zip(leaves, _positions(question, leaves), strict=True):
        nodes: Any = int(on)
        own = leaf
        if isinstance(leaf, np.ndarray):
            own, nodes = alike(leaf), np.zeros(leaf.shape, np.int64)
            nodes[...] = np.arange(1, size + 1).reshape(leaf.shape) if on else 0
        given.append(Cell(nodes, UNKNOWN if kind == "global" and _is_float(leaf) else own))
    try:
        results = run.run(tape.program, given)
    except UnstructuredError as error:
        count = size if question.hessian else _count(question, tape, leaves)
        return SparsityPattern.of(np.ones((count, size), bool), (f"all of it: {error}",))
    if tape.rebuild.needs_containers:
        raise UnsupportedTypeError(
            f"{function_name(question.f)} changes, or returns, a list, dict or object that it is "
            "given, so its pattern cannot be found: pass one"
        )
    y: Any = tape.rebuild(results)
    if question.has_aux:
        y = y[0]
    if isinstance(y, (int, float, complex)):
        y = Cell(0)
    if not isinstance(y, Cell):
        raise UnsupportedTypeError(
            f"a sparsity pattern is of a function that returns one array: let "
            f"{function_name(question.f)} return one vector (fwdad.ravel makes one)"
        )
    nodes = np.atleast_1d(np.asarray(y.nodes))
    if question.hessian:
        found = hessian_pattern(graph, int(nodes.flat[0]))
    else:
        found = jacobian_pattern(graph, nodes)
    return SparsityPattern.of(found, _in_words(run.dense))


def _positions(question: Question, leaves: list[Any]) -> list[bool]:
    """Which inputs of the tape are what is differentiated."""
    if isinstance(question.x, np.ndarray):
        return [leaf is question.x for leaf in leaves]
    before = len(Flattened(question.args[: question.argnum], {}).leaves)
    return [k == before for k in range(len(leaves))]


def _count(question: Question, tape: Tape, leaves: list[Any]) -> int:
    """How many elements the value has; the tape is run to see it."""
    y = tape.rebuild(Runner(tape.program, "numpy")(*on_copies(tape, leaves)))
    return int(np.size(y[0] if question.has_aux else y))


def _in_words(dense: list[Any]) -> tuple[str, ...]:
    """Where something was taken as dense, each place once."""
    told = []
    for place, what in dense:
        told.append(f"{what}, {place.filename}:{place.line}" if place is not None else what)
    return tuple(dict.fromkeys(told))
