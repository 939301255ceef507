"""Long functions, which are cut into parts: what is in their variables stays where it is.

Numba passes each field of an array by itself, packs all results into one value, and, where a
function raises, drops the reference of each variable that is alive there. Of a long function this
was most of the code, and grew faster than its length. Here an argument of a part is an address, a
result is stored where its variable lives, and the owners of arrays are listed in memory, so that
one loop drops them. Importing this module needs Numba.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite.ir import ArrayType, LiteralStructType, VoidType
from numba.core import cgutils, ir
from numba.core import types as _types
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.callconv import RETCODE_OK
from numba.core.datamodel import models, register_default

from fwdad.codegen.llvm import elements
from fwdad.codegen.llvm.lowering import OWNER_TYPE, ProgramLower
from fwdad.codegen.llvm.outlining import call_own

types: Any = _types

PART = "__fwdad_part__"
"""The attribute of a function that was cut out of another one."""
CUT = "__fwdad_cut__"
"""The attribute of a function that such parts were cut out of."""


def is_long(function: Any) -> bool:
    """Whether a function was cut into parts, or is one of them."""
    return not {PART, CUT}.isdisjoint(vars(function))


class LentType(types.Type):  # type: ignore[misc]
    """The address of a value that its owner keeps while it is used."""

    def __init__(self, held: Any) -> None:
        self.held = held
        super().__init__(f"lent({held})")


class ResultsType(types.Type):  # type: ignore[misc]
    """Values that a function stores next to each other."""

    def __init__(self, held: Any) -> None:
        self.held = held
        super().__init__(f"results({held})")


@register_default(LentType)
class _LentModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, t: LentType) -> None:
        super().__init__(manager, t, manager[t.held].get_value_type().as_pointer())


@register_default(ResultsType)
class _ResultsModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, t: ResultsType) -> None:
        values = [manager[item].get_value_type() for item in t.held]
        super().__init__(manager, t, LiteralStructType(values))


@contextmanager
def lent(state: Any) -> Iterator[None]:
    """The signature of a part, while it is lowered: addresses, and results that it stores."""
    held = {name: state.typemap[name] for name in (f"arg.{v}" for v in state.func_ir.arg_names)}
    result = state.return_type
    state.typemap.update((name, LentType(t)) for name, t in held.items())
    if isinstance(result, types.BaseTuple):
        state.return_type = ResultsType(result)
    try:
        yield
    finally:
        state.typemap.update(held)
        state.return_type = result


class LongLower(ProgramLower):
    """Writes a function that was cut into parts, or one of its parts."""

    def setup_function(self, fndesc: Any) -> None:
        """Begin the function."""
        super().setup_function(fndesc)
        self._results: dict[str, Any] = {}  # by variable: the memory of all results of a part,
        self._taken: dict[str, Any] = {}  # or of one, until it gets a variable of the program
        self._returned = self._find_returned()
        self._once = _assigned_once(self.blocks)
        self._borrowed: set[str] = set()
        if self._is_part:
            self.function.attributes.add("noinline")  # LLVM's passes are slow for long functions
            arguments = (s for s in self._assignments() if isinstance(s.value, ir.Arg))
            self._borrowed.update({s.target.name for s in arguments} & self._once)
        arrays = (v for v in self._once if isinstance(self.typeof(v), types.Array))
        self.listed = {v: k for k, v in enumerate(sorted({*arrays} - self._borrowed))}
        if self.listed:
            self._owner_list = self._memory(ArrayType(cgutils.voidptr_t, len(self.listed)))

    @property
    def _is_part(self) -> bool:
        return PART in vars(self.func_ir.func_id.func)

    def lower_inst(self, inst: Any) -> Any:
        """Lower a statement."""
        if isinstance(inst, ir.Del) and any(
            inst.value in names for names in (self._results, self._taken, self._returned)
        ):
            return None
        if isinstance(inst, ir.Return) and inst.value.name in self._returned:
            return self.builder.ret(RETCODE_OK)
        if isinstance(inst, ir.Assign) and self._is_moved(inst.target.name, inst.value):
            return None
        return super().lower_inst(inst)

    def lower_assign(self, ty: Any, inst: Any) -> Any:
        """Lower the value of an assignment; what is borrowed gets no reference of its own."""
        if not (self._is_part and isinstance(inst.value, ir.Arg)):
            return super().lower_assign(ty, inst)
        k = inst.value.index
        held = self.fndesc.argtypes[k].held
        value = self.context.cast(self.builder, self.builder.load(self.fnargs[k]), held, ty)
        if inst.target.name not in self._borrowed:
            self.incref(ty, value)
        return value

    def owns(self, name: str) -> bool:
        """Whether a variable may own memory, of which no list knows."""
        return name not in self.listed and name not in self._borrowed and super().owns(name)

    def storevar(self, value: Any, name: str, argidx: Any = None) -> None:
        """Assign to a variable."""
        super().storevar(value, name, argidx)
        if name in self.listed:
            self._list(name, value)

    def delvar(self, name: str) -> None:
        """Delete a variable."""
        if name not in self._borrowed:
            super().delvar(name)
        if name in self.listed:
            self._list(name, None)

    def _int(self, n: int) -> Any:
        return self.context.get_constant(types.intp, n)

    def _memory(self, t: Any) -> Any:
        """Memory for a value of an LLVM type, of zeros when the function begins.

        Numba deletes variables also where, on some path, they have not been assigned.
        """
        with self.builder.goto_entry_block():
            memory = self.builder.alloca(t)
            size = self._int(self.context.get_abi_sizeof(t))
            cgutils.memset(self.builder, memory, size, 0)
        return memory

    def _assignments(self) -> Iterable[Any]:
        return (s for block in self.blocks.values() for s in block.find_insts(ir.Assign))

    # -- the list of owners

    def _list(self, name: str, array: Any) -> None:
        owner = cgutils.voidptr_t(None)
        if array is not None:
            owner = elements.owner_of(self.context, self.builder, self.typeof(name), array)
        place = cgutils.gep_inbounds(self.builder, self._owner_list, 0, self.listed[name])
        self.builder.store(owner, place)

    def drop_listed(self) -> None:
        """Write the code that drops the references of the listed variables."""
        if self.listed:
            first = cgutils.gep_inbounds(self.builder, self._owner_list, 0, 0)
            given = [first, self._int(len(self.listed))]
            write = functools.partial(_write_drop, self.context)
            call_own(self.builder, "fwdad_drop", VoidType(), given, write)

    # -- what a part returns

    def _find_returned(self) -> set[str]:
        """The variables that hold the tuple that a part returns."""
        names: set[str] = set()
        if isinstance(self.fndesc.restype, ResultsType):
            for block in self.blocks.values():
                for s in block.find_insts(ir.Return):
                    made: Any = ir.Expr.cast(s.value, s.loc)
                    while isinstance(made, ir.Expr) and made.op == "cast":
                        names.add(made.value.name)
                        made = self.made_of(made.value)
        return names

    def _store_results(self, items: Any) -> None:
        """Store what a part returns, with a reference each."""
        memory = self.function.args[0]
        for k, (item, t) in enumerate(zip(items, self.fndesc.restype.held, strict=True)):
            loaded = self.loadvar(item.name)
            value = self.context.cast(self.builder, loaded, self.typeof(item.name), t)
            self.incref(t, value)
            self.builder.store(value, cgutils.gep_inbounds(self.builder, memory, 0, k))

    # -- what its caller does with that

    def _is_moved(self, name: str, value: Any) -> bool:
        """Whether an assignment is one of results of a part, which need no copy; made then."""
        op = value.op if isinstance(value, ir.Expr) else None
        if name in self._returned:
            if op == "build_tuple":
                self._store_results(value.items)
        elif op == "call" and (dispatcher := self._part_called(value)) is not None:
            self._results[name] = self._call_part(dispatcher, value)
        elif op == "exhaust_iter" and value.value.name in self._results:
            self._results[name] = self._results[value.value.name]
        elif op == "static_getitem" and value.value.name in self._results:
            memory, t = self._results[value.value.name], self.typeof(value.value.name)
            place = cgutils.gep_inbounds(self.builder, memory, 0, value.index)
            if name.startswith("$"):
                self._taken[name] = place
            else:
                self._move(place, t[value.index], name)
        elif isinstance(value, ir.Var) and value.name in self._taken:
            self._move(self._taken[value.name], self.typeof(value.name), name)
        else:
            return False
        return True

    def _part_called(self, call: Any) -> Any:
        """The dispatcher of the part that a call calls, or None."""
        dispatcher = getattr(self.typeof(call.func.name), "dispatcher", None)
        is_part = dispatcher is not None and PART in vars(dispatcher.py_func)
        return dispatcher if is_part else None

    def _call_part(self, dispatcher: Any, call: Any) -> Any:
        """Call a part; returns the memory of its results."""
        signature = self.fndesc.calltypes[call]
        made = dispatcher.overloads[signature.args]
        self.context.add_linking_libs([made.library])
        function = self.context.declare_function(self.module, made.fndesc)
        returned, raised = (self._memory(a.type.pointee) for a in function.args[:2])
        given = [self._address(v.name, t) for v, t in zip(call.args, signature.args, strict=True)]
        code = self.builder.call(function, [returned, raised, *given])
        convention = self.call_conv
        status = convention._get_return_status(self.builder, code, self.builder.load(raised))
        with cgutils.if_unlikely(self.builder, status.is_error):
            convention.return_status_propagate(self.builder, status)
        return returned

    def _address(self, name: str, t: Any) -> Any:
        """Where the value of a variable is, as a value of some type."""
        held = self.typeof(name)
        if held == t and name in self.varmap and name not in self._blk_local_varmap:
            return self.varmap[name]
        value = self.context.cast(self.builder, self.loadvar(name), held, t)
        memory = self._memory(value.type)
        self.builder.store(value, memory)
        return memory

    def _move(self, memory: Any, t: Any, name: str) -> None:
        """Give a result to a variable, which lives in its memory if it has no other value."""
        value = self.builder.load(memory)
        if name in self._once and t == self.typeof(name):
            self.varmap[name] = memory
            self._singly_assigned_vars.discard(name)
            if name in self.listed:
                self._list(name, value)
        else:
            self.storevar(self.context.cast(self.builder, value, t, self.typeof(name)), name)


def _assigned_once(blocks: Any) -> set[str]:
    """The variables that are assigned in one place, which is not in a loop."""
    looped: set[int] = set()
    for loop in compute_cfg_from_blocks(blocks).loops().values():
        looped |= loop.body
    counts: dict[str, int] = {}
    for start, block in blocks.items():
        for s in block.find_insts(ir.Assign):
            counts[s.target.name] = counts.get(s.target.name, 0) + (2 if start in looped else 1)
    return {name for name, n in counts.items() if n == 1}


def _write_drop(context: Any, builder: Any, given: Any) -> None:
    """Write the function that drops some references, of which any may be missing."""
    first, count = given
    with cgutils.for_range(builder, count) as loop:
        owner = builder.load(builder.gep(first, [loop.index], inbounds=True))
        context.nrt.decref(builder, OWNER_TYPE, owner)
    builder.ret_void()
