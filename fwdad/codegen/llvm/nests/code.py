"""A loop nest as an LLVM function of its own, which is called with what the loop reads.

Each operation is the one that Numba would choose, so that the meaning is the same; arrays are
passed as pointers with lengths and strides, and views of them are such pointers, too. Importing
this module needs Numba.
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
from fwdad.codegen.llvm.outlining import OpaqueCallable, call_raising
from fwdad.codegen.loops.array_provenance import Given

types: Any = _types


class NestFunction:
    """What a source calls in place of a loop nest.

    ``is_refused`` becomes true if the nest holds something without a type here. ``stays_apart``
    forbids LLVM to inline it; ``shared`` are the loops that other nests have as well.
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
        """The types inside the nest, for some types of its arguments."""
        if given not in self.typed:
            self.typed[given] = Typed(context, self.nest, given)
        return self.typed[given]


class NestType(OpaqueCallable):
    """Numba's type of a :class:`NestFunction`."""

    def __init__(self, nest: NestFunction) -> None:
        self.nest = nest
        super().__init__(nest.__name__)

    @property
    def key(self) -> Any:
        """What Numba compares: nests with the same code may have been given other types."""
        return self.name, id(self.nest)

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """The signature for some arguments; a nest that has none becomes refused."""
        assert not kws
        given = tuple(types.unliteral(t) for t in args)
        try:
            typed = self.nest.type_for(context, given)
        except NestError as error:
            self.nest.is_refused = True
            raise TypingError(str(error)) from error
        return typing.signature(typed.result, *given)


register_model(NestType)(models.OpaqueModel)


def write_call(
    context: Any,
    builder: Any,
    nest: NestFunction,
    signature: Any,
    args: Sequence[Any],
    known: Sequence[Given],
) -> Any:
    """Write the call of a nest, and the nest itself if the module does not have it yet.

    ``known`` is what holds of each argument at all calls in the module.
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
    """The types and values that are passed for an argument: of arrays only what access needs."""
    if not isinstance(t, types.Array):
        yield t, x
        return
    array = held(context, builder, t, x)
    yield types.CPointer(t.dtype), array.data
    strides = known.strides(t.ndim, 1) if t.layout == "A" else []
    steps = [array.steps[k] for k, n in enumerate(strides) if n is None]
    for n in [*array.lengths, *steps]:
        yield types.intp, n


__all__ = ["NestFunction", "NestType", "write_call"]
