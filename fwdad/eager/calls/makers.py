"""NumPy functions that make arrays from what may hold duals, and those that only need a shape."""

from __future__ import annotations

import enum
import importlib
import inspect
import itertools
import operator
import types
from typing import Any

import numpy as np

from fwdad.eager import hooks
from fwdad.eager.activity import is_active
from fwdad.eager.calls import protocols
from fwdad.eager.calls.apply import primal_part
from fwdad.eager.calls.creation import cast, make_array, with_values
from fwdad.eager.calls.dispatch import call, handler
from fwdad.eager.duals import methods
from fwdad.eager.duals.array import Array
from fwdad.eager.duals.explicit import explicit, settled
from fwdad.eager.duals.flat import Flat
from fwdad.eager.duals.scalar import Scalar
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager.memory import store
from fwdad.eager.memory.shadow import SHADOWED, find_shadow
from fwdad.eager.memory.stale import check_copied, check_lists
from fwdad.eager.run import STATE
from fwdad.ops import functions_with
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.plain import plain


class _Given:
    """An object that returns its own array, whether asked for a copy or not."""

    def __init__(self) -> None:
        self.array = np.zeros(1)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.array


def _trusts() -> bool:
    """Whether ``np.array`` takes what ``__array__(copy=True)`` returns for a copy (2.0 did not)."""
    given = _Given()
    return np.may_share_memory(np.array(given), given.array)


_TRUSTS_COPIES = _trusts()


def copy_asked(copy: Any) -> Any:
    """The option ``copy`` of ``np.array``, for which SciPy passes ``np._CopyMode.IF_NEEDED``."""
    if isinstance(copy, enum.Enum):
        return {"ALWAYS": True, "NEVER": False}.get(copy.name)
    return copy


def _copies(kwargs: dict[str, Any]) -> bool:
    return bool(copy_asked(kwargs.get("copy", True)))


def _asked_for_a_copy(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The user's ``__array__`` that NumPy asks for a copy, and trusts; or None."""
    if not (_TRUSTS_COPIES and function is np.array and args and _copies(kwargs)):
        return None
    method = getattr(type(args[0]), "__array__", None)
    if type(method) is not types.FunctionType or type(args[0]) is Flat or isinstance_dual(args[0]):
        return None
    parameters = inspect.signature(method).parameters
    takes = "copy" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return method if takes else None


@handler(Flat.__array__)
def _flat_as_array(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    """``x.flat`` as NumPy's functions read it: a view, or a read-only copy."""
    base = args[0].base
    read = methods.with_axes(base).reshape(-1)
    if not np.may_share_memory(plain(read), plain(base)):
        plain(read).flags.writeable = False
    return read


def _creation(function: Any) -> None:
    @handler(function)
    def create(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        check_lists(args[:1])
        if len(args) == 1 and not kwargs and type(args[0]) is list:
            if Scalar in set(map(type, args[0])):
                return make_array(args[0])
        asked = _asked_for_a_copy(function, args, kwargs)
        if asked is not None:
            given = call(asked, args[0], copy=True)
            return call(function, given, *args[1:], **(kwargs | {"copy": None}))
        if SHADOWED and args and type(args[0]) not in (*protocols.KNOWN, Flat):
            given = args[0]
            viewed = type(given) in protocols.BUFFERS
            given = np.asarray(given) if viewed else protocols.as_numpy_reads(given)
            if len(args) > 1 or kwargs.get("dtype") is not None:  # then NumPy asks for numbers
                given = protocols.as_numbers(given)
            args = (given, *args[1:])
        method = getattr(type(args[0]), "__array__", None) if args else None
        if isinstance(method, types.FunctionType) and not isinstance_dual(args[0]):
            given = call(method, args[0])
            copied = function is np.array and _copies(kwargs) and not _TRUSTS_COPIES
            if type(args[0]) is not Flat or copied:
                return call(function, given, *args[1:], **kwargs)
            # NumPy takes its result for a copy, which it is not
            dtype = args[1] if len(args) > 1 else kwargs.get("dtype")
            array = (
                given
                if dtype is None
                else methods.call_method(given, "astype", (dtype,), {"copy": False})
            )
            missing = kwargs.get("ndmin", 0) - 1
            return np.reshape(array, (1,) * missing + array.shape) if missing > 0 else array
        if not is_active(args) and not _holds_duals(args):
            array = function(*args, **kwargs)
            check_copied(args[:1], array)
            return array
        values, *rest = args
        dtype = kwargs.get("dtype", rest[0] if rest else None)
        values = explicit(values)
        if type(values) is Array and dtype is not None and np.dtype(dtype).kind == "O":
            return methods.call_method(values, "astype", (object,), {})
        if type(values) is Array:
            return _as_numpy_would(function, values, dtype, rest[1:], kwargs)
        array = make_array(_listed(values), dtype)
        if type(values) is np.ndarray and type(array) is Array:  # in the order of the objects
            own = np.empty_like(values, plain(array).dtype)
            own[...] = plain(array)
            return with_values(array, function(own, *args[1:], **kwargs))
        ndmin = kwargs.get("ndmin", 0)
        if type(array) is Array and array.ndim < ndmin:
            array = np.reshape(array, (1,) * (ndmin - array.ndim) + array.shape)
        return array


@handler(Chunk)
def _chunk(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A rule body's chunk; its lanes are copied if they lie in memory that is restored later."""
    (lanes,) = (*args, *kwargs.values())
    if type(lanes) in (list, tuple):
        lanes = make_array(lanes)
    if STATE.run is not None and isinstance(lanes, np.ndarray):
        raw = plain(lanes)
        if STATE.run.log.wrote(raw) or (SHADOWED and find_shadow(raw) is not None):
            lanes = settled(lanes)
    return Chunk(lanes)


def _as_numpy_would(
    function: Any, x: Array, dtype: Any, rest: list[Any], kwargs: dict[str, Any]
) -> Any:
    """An array from a dual array: the same, a view, or a copy in the layout that NumPy chooses."""
    raw = plain(x)
    options = {k: v for k, v in kwargs.items() if k != "dtype"}
    converted = cast(x, dtype, copy=False)
    array = function(raw, dtype, *rest, **options)
    if array is raw:
        return x
    if array.dtype == raw.dtype and np.may_share_memory(array, raw):
        return np.reshape(x, array.shape)
    if array.shape != raw.shape:
        converted = np.reshape(converted, array.shape)
    return with_values(converted, array)


def _listed(values: Any) -> Any:
    is_of_objects = type(values) is np.ndarray and values.dtype.kind == "O"
    return values.tolist() if is_of_objects else values


def _holds_duals(args: tuple[Any, ...]) -> bool:
    values = args[0] if args else None
    return type(values) is np.ndarray and values.dtype.kind == "O" and is_active(list(values.flat))


for _function in functions_with(lambda record: record.gathers):
    _creation(_function)


@handler(np.arange)
def _arange(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``np.arange``: the values of the bounds fix the length; elements move with start and step."""
    if not is_active((*args, *kwargs.values())):
        return np.arange(*args, **kwargs)
    bound = dict(zip(("start", "stop", "step", "dtype"), args, strict=False)) | kwargs
    start, stop = bound.get("start", 0), bound.get("stop")
    if stop is None:
        start, stop = 0, start
    step = bound.get("step", 1)
    own = np.arange(plain(start), plain(stop), plain(step), bound.get("dtype"))
    moved = start + step * np.arange(len(own))
    if not isinstance_dual(moved):
        return own
    return with_values(cast(moved, own.dtype, copy=False), own)


@handler(np.fromiter)
def _fromiter(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bound = dict(zip(("iter", "dtype", "count"), args, strict=False)) | kwargs
    count = operator.index(bound.get("count", -1))
    items = list(itertools.islice(hooks.iterate(bound["iter"]), None if count < 0 else count))
    if not is_active(items) or len(items) < count:  # NumPy raises
        return np.fromiter(map(primal_part, items), bound["dtype"], count)
    return make_array(items, bound["dtype"])


@handler(np.full)
def _full(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if SHADOWED:
        args = protocols.all_as_numpy_reads(args)
    if not is_active((*args, *kwargs.values())):
        return np.full(*args, **kwargs)
    bound = dict(zip(("shape", "fill_value", "dtype", "order"), args, strict=False)) | kwargs
    value = explicit(bound["fill_value"])
    array = cast(make_array(value), bound.get("dtype"), copy=False)
    shape, order = bound["shape"], bound.get("order", "C")
    return _filled(array, np.empty(shape, np.bool_, order=order))


def _filled(value: Any, like: np.ndarray) -> Any:
    """A new array filled with one value or a broadcast, in the memory layout of ``like``."""
    axes = sorted(range(like.ndim), key=lambda k: (-like.strides[k], k))
    try:
        rows = np.transpose(np.broadcast_to(value, like.shape), axes)
    except ValueError:
        np.copyto(np.empty(like.shape), plain(value), casting="unsafe")  # raises NumPy's own error
        raise
    return np.transpose(methods.call_method(rows, "copy", (), {}), np.argsort(axes).tolist())


def _prototype(given: Any) -> Any:
    """The array, or what NumPy makes of a list, that determines a shape and a dtype."""
    return plain(make_array(given) if isinstance(given, (list, tuple)) else given)


@handler(np.full_like)
def _full_like(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    names = ("a", "fill_value", "dtype", "order", "subok", "shape")
    bound = dict(zip(names, args, strict=False)) | kwargs
    like = _prototype(bound["a"])
    dtype = bound.get("dtype") or like.dtype
    if SHADOWED:
        bound["fill_value"] = protocols.all_as_numpy_reads((bound["fill_value"],))[0]
    if not is_active((bound["fill_value"],)):
        return np.full_like(*(plain(a) for a in args), **kwargs)
    order = bound.get("order", "K")
    space = np.empty_like(like, np.bool_, order=order, subok=False, shape=bound.get("shape"))
    value = cast(make_array(explicit(bound["fill_value"])), dtype, copy=False)
    return _filled(value, space)


def _like(function: Any) -> None:
    @handler(function)
    def like(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return function(_prototype(args[0]), *args[1:], **kwargs)


for _function in functions_with(lambda r: r.shape_only == (0,) and r.fill is not None):
    _like(_function)


class _Converter:
    """NumPy's own helper behind ``insert``, ``delete``, …, for arguments that are duals."""

    def __init__(self, *values: Any) -> None:
        self.values = [call(np.asarray, v) for v in values]
        self._of_primals = _array_converter(*map(primal_part, values))
        self.scalar_input = tuple(np.ndim(primal_part(v)) == 0 for v in values)

    def __getitem__(self, k: int) -> Any:
        return self.values[k]

    def __len__(self) -> int:
        return len(self.values)

    def as_arrays(self, *, subok: bool = True, pyscalars: str = "convert") -> tuple[Any, ...]:
        """The arguments as arrays."""
        return tuple(self.values)

    def result_type(self, *extra: Any, **options: Any) -> Any:
        """The common dtype, by which Python's numbers are weak."""
        return self._of_primals.result_type(*extra, **options)

    def wrap(self, made: Any, *, to_scalar: bool | None = None) -> Any:
        """The result as it is: there is no subclass to restore."""
        return made[()] if to_scalar and np.ndim(plain(made)) == 0 else made


class _PlainConverter:
    """NumPy's own helper for plain arguments whose result may still be a dual."""

    def __init__(self, *values: Any) -> None:
        self.own = _array_converter(*values)

    def __getitem__(self, k: int) -> Any:
        return self.own[k]

    def __len__(self) -> int:
        return len(self.own)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)

    def wrap(self, made: Any, *, to_scalar: bool | None = None) -> Any:
        """The result in the class of the arguments; a dual stays as it is."""
        if not is_active((made,)):
            return self.own.wrap(made, to_scalar=to_scalar)
        return made[()] if to_scalar and np.ndim(plain(made)) == 0 else made


_array_converter: Any = getattr(
    importlib.import_module("numpy._core._multiarray_umath"), "_array_converter", None
)
if _array_converter is not None:

    @handler(_array_converter)
    def _convert(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
        return _Converter(*args) if is_active(args) else _PlainConverter(*args)


@handler(np.shape)
def _shape(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return np.shape(*primal_part(args), **{k: primal_part(v) for k, v in kwargs.items()})


@handler(np.ndim)
def _ndim(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return np.ndim(*primal_part(args), **{k: primal_part(v) for k, v in kwargs.items()})


@handler(np.size)
def _size(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return np.size(*primal_part(args), **{k: primal_part(v) for k, v in kwargs.items()})


def _strided(function: Any) -> None:
    """Handle views with arbitrary strides of memory, whose tangents are then found by address."""

    @handler(function)
    def view(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        x, *rest = args
        if type(x) is Array:
            store.settle(x)
            x = plain(x)
        return function(x, *rest, **kwargs)


_strided(np.lib.stride_tricks.as_strided)
_strided(np.lib.stride_tricks.sliding_window_view)
