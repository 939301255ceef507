"""A loop as LLVM code, in a function of its own that is called with what the loop reads.

Each operation is the one that Numba would take, so that it means the same; arrays are given as
pointers with lengths and steps, and views of them are such pointers, too. Importing this module
needs Numba.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, typing
from numba.core import types as _types
from numba.core.datamodel import models
from numba.core.errors import TypingError
from numba.extending import register_model

from fwdad.codegen.llvm.elements import held
from fwdad.codegen.llvm.loop_merging import SharedLoop
from fwdad.codegen.llvm.nests.extraction import Nest
from fwdad.codegen.llvm.nests.types import NestError, Typed
from fwdad.codegen.llvm.nests.writer import NestWriter
from fwdad.codegen.llvm.outlining import call_raising
from fwdad.codegen.loops.array_provenance import Given

types: Any = _types


class NestFunction:
    """What a source calls in the place of a loop.

    Parameters
    ----------
    nest : Nest
        The loop.

    Attributes
    ----------
    is_refused : bool
        Whether it holds what has no types here.
    stays_apart : bool
        Whether LLVM must not write it into its caller.
    shared : mapping
        Loops that other nests have as well.
    """

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.__name__ = nest.name
        self.typed: dict[Any, Typed] = {}
        self.is_refused = False
        self.stays_apart = False
        self.shared: Mapping[ast.For, SharedLoop] = {}
        self._numba_type_ = NestType(self)

    def type_for(self, context: Any, given: tuple[Any, ...]) -> Typed:
        """The types inside, for those of the arguments."""
        if given not in self.typed:
            self.typed[given] = Typed(context, self.nest, given)
        return self.typed[given]


class NestType(types.Callable, types.Opaque):  # type: ignore[misc]
    """The type of such a function.

    Parameters
    ----------
    nest : NestFunction
        The function.
    """

    def __init__(self, nest: NestFunction) -> None:
        self.nest = nest
        super().__init__(nest.__name__)

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """The signature for some arguments."""
        assert not kws
        given = tuple(types.unliteral(t) for t in args)
        try:
            typed = self.nest.type_for(context, given)
        except NestError as error:
            self.nest.is_refused = True
            raise TypingError(str(error)) from error
        return typing.signature(typed.result, *given)

    def get_call_signatures(self) -> Any:
        """Nobody has written down any."""
        return (), True

    def get_impl_key(self, sig: Any) -> Any:
        """The function is its own implementation."""
        return type(self), sig


register_model(NestType)(models.OpaqueModel)


def write_call(
    context: Any,
    builder: Any,
    nest: NestFunction,
    signature: Any,
    args: Sequence[Any],
    known: Sequence[Given],
) -> Any:
    """Write the call of a nest, and the nest itself where the module does not have it.

    Parameters
    ----------
    context, builder
        Numba's target context and LLVM builder.
    nest : NestFunction
        What is called.
    signature : Signature
        Its types.
    args : sequence of LLVM value
        Its arguments.
    known : sequence of Given
        What is known of each at all calls in the module.

    Returns
    -------
    LLVM value
        Of the signature's result.
    """
    typed = nest.typed[signature.args]
    given, parts = [], []
    for t, x, of in zip(signature.args, args, known, strict=True):
        for kind, part in _parts(context, builder, t, x, of):
            given.append(kind)
            parts.append(part)
    result = signature.return_type
    convention = context.call_conv
    kinds = hashlib.sha256(repr(signature).encode()).hexdigest()[:16]
    name = f"{nest.__name__}_{kinds}"
    function_type = convention.get_function_type(result, given)
    function = cgutils.get_or_insert_function(builder.module, function_type, name)
    if not function.blocks:
        function.linkage = "internal"
        if nest.stays_apart:
            function.attributes.add("noinline")
        convention.decorate_function(function, [f"p{k}" for k in range(len(given))], given)
        inside = ir.IRBuilder(function.append_basic_block("entry"))
        arguments = convention.decode_arguments(inside, given, function)
        NestWriter(context, inside, typed, nest.shared).write(arguments, known)
    return call_raising(context, builder, function, result(*given), parts)


def _parts(context: Any, builder: Any, t: Any, x: Any, known: Given) -> Iterator[tuple[Any, Any]]:
    """What a nest is given for an argument: of arrays only what access needs."""
    if not isinstance(t, types.Array):
        yield t, x
        return
    array = held(context, builder, t, x)
    yield types.CPointer(t.dtype), array.data
    steps = array.steps if t.layout == "A" else []
    for n in [*array.lengths, *(x for k, x in enumerate(steps) if k != known.neighbours)]:
        yield types.intp, n


__all__ = ["NestFunction", "NestType", "write_call"]
