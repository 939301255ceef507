"""The methods of dual arrays and scalars, and of plain arrays with tangents."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.core.operators import BINARY, COMPARISONS
from fwdad.core.register_into import enter_into
from fwdad.eager.activity import is_active
from fwdad.eager.calls import numpy_calls
from fwdad.eager.calls.apply import primal_part
from fwdad.eager.calls.creation import cast, copied, make_array, with_values
from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals.array import Array, wrap
from fwdad.eager.duals.dual import leak
from fwdad.eager.duals.explicit import explicit, records
from fwdad.eager.duals.scalar import Scalar
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager.memory import store
from fwdad.eager.memory.shadow import SHADOWED, find_shadow
from fwdad.eager.memory.stale import ARRAYS, check_array, check_copied, check_read
from fwdad.eager.run import STATE
from fwdad.errors import DualLeakError, MissingRuleError, UnsupportedTypeError
from fwdad.tangents.plain import plain

# methods with the arguments of the function of that name
FUNCTIONS: dict[str, Any] = {
    "sum": np.sum, "mean": np.mean, "prod": np.prod, "var": np.var, "std": np.std, "max": np.max,
    "min": np.min, "cumsum": np.cumsum, "cumprod": np.cumprod, "trace": np.trace,
    "diagonal": np.diagonal, "take": np.take, "repeat": np.repeat, "squeeze": np.squeeze,
    "swapaxes": np.swapaxes, "conj": np.conj, "conjugate": np.conjugate,
    "dot": np.dot, "choose": np.choose, "ravel": np.ravel, "round": np.round,
}  # fmt: skip

# methods whose value carries no tangent
CONSTANT = {"argmax", "argmin", "argsort", "argpartition", "any", "all", "nonzero", "searchsorted",
             "is_integer"}  # fmt: skip
LEAKS = {"as_integer_ratio", "hex", "tobytes", "dumps", "tostring",
          "__reduce__", "view_bytes",
          "getfield", "setfield", "__array_interface__", "__dlpack__"}  # fmt: skip


OUTPUTS = {"tofile", "dump"}
"""Methods that write into a file."""


def call_method(o: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``o.name(...)`` of a dual."""
    check_read(args)
    o = explicit(o)
    if name in ("conjugate", "conj") and not args and not kwargs:
        if plain(o).dtype.kind == "f" if type(o) is not Scalar else is_real(o):
            return o  # itself, not a copy
        if type(o) is Scalar:
            return part_of(np.conjugate, o)
    operation = _DUNDERS.get(name)
    if operation is not None:
        return operation(o, *args)
    method = METHODS.get(name)
    if method is not None:
        return method(o, *args, **kwargs)
    function = FUNCTIONS.get(name)
    if function is not None or name in OUTPUTS:
        return call(function or getattr(np.ndarray, name), o, *args, **kwargs)
    if name in CONSTANT:
        rest = {k: primal_part(v) for k, v in kwargs.items()}
        return getattr(plain(o), name)(*primal_part(args), **rest)
    if name in LEAKS:
        raise DualLeakError(leak(f"plain data (through .{name}())", o))
    if type(o) is np.ndarray:
        message = f"ndarray.{name} with an argument that carries a derivative has no frule"
        raise MissingRuleError(message)
    return call(attribute(o, name), *args, **kwargs)


def attribute(o: Any, name: str) -> Any:
    """``o.name`` of a dual."""
    try:
        return getattr(o, name)
    except AttributeError:
        pass
    return of_primal(o, name)


def of_primal(o: Any, name: str) -> Any:
    """An attribute that only the primal of a dual has: a known method, or an error."""
    if name.startswith("__") or not hasattr(plain(o), name):
        message = f"{type(plain(o)).__name__!r} object has no attribute {name!r}"
        raise AttributeError(message)
    if name in METHODS or name in FUNCTIONS or name in CONSTANT or name in LEAKS or name in OUTPUTS:
        return _Bound(o, name)
    message = f"attribute {name!r} of a value that carries a derivative has no frule"
    raise MissingRuleError(message)


class _Bound:
    """A method of a dual to be called later; its name and docstring are those of the primal's."""

    def __init__(self, o: Any, name: str) -> None:
        self.__self__ = o
        self.__name__ = name
        self.__qualname__ = f"{type(plain(o)).__name__}.{name}"
        self.__doc__ = getattr(type(plain(o)), name).__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return call_method(self.__self__, self.__name__, args, kwargs)


def is_real(o: Any) -> bool:
    """Whether a scalar is not complex."""
    return not isinstance(plain(o), (complex, np.complexfloating))


def part_of(function: Any, o: Any) -> Any:
    """A part of a complex scalar, or its conjugate; a Python number for a Python number."""
    part = call(function, o)
    return (
        python_number(part)
        if isinstance(plain(o), complex) and not isinstance(plain(o), np.generic)
        else part
    )


def _operation(function: Any, *, reflected: bool) -> Callable[..., Any]:
    if reflected:
        return lambda o, other: function(explicit(other), explicit(o))
    return lambda o, *other: function(explicit(o), *(explicit(x) for x in other))


_DUNDERS = {
    name: _operation(o.function, reflected=reflected)
    for o in BINARY
    for name, reflected in ((o.method, False), (o.reflected, True))
} | {
    f"__{f.__name__}__": _operation(f, reflected=False)
    for f in (operator.neg, operator.abs, operator.pos)
}

_COMPARISONS = {o.method for o in COMPARISONS}


def is_number_operator(o: Any, name: str, args: tuple[Any, ...]) -> bool:
    """Whether a method is an operator of a plain number, and its argument is active."""
    known = name in _DUNDERS or name in _COMPARISONS
    return known and isinstance(o, (int, float, complex, np.generic)) and is_active(args)


def number_operator(o: Any, name: str, args: tuple[Any, ...]) -> Any:
    """``o.__mul__(x)``: the operator, unless the number's class returns ``NotImplemented``."""
    result = getattr(type(o), name)(o, *map(plain, args))
    if result is NotImplemented or name in _COMPARISONS:
        return result
    y = _DUNDERS[name](o, *args)
    return y if isinstance(result, (np.generic, np.ndarray)) else python_number(y)


_IN_PLACE = {o.in_place_method: o.in_place for o in BINARY}

_WRITING = {"sort", "fill", "put", "partition", "itemset", "resize", "setflags", "byteswap",
            "__setitem__"}  # fmt: skip


def call_plain_method(
    o: np.ndarray, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``o.name(...)`` of a plain array, whose memory or arguments may carry tangents."""
    check_read(args)
    shadowed = bool(SHADOWED) and find_shadow(o) is not None
    if name in _IN_PLACE:
        return call(_IN_PLACE[name], o, *args)
    if name in _WRITING:
        writer = METHODS.get(name)
        if writer is not None and (shadowed or is_active((*args, *kwargs.values()))):
            return writer(o, *args, **kwargs)
        if ARRAYS and name not in ("fill", "setfield"):
            check_array(o)
        if STATE.run is not None:
            STATE.run.writes(o)
            if name == "resize":
                return _resize(o, args, kwargs)
        return getattr(o, name)(*args, **kwargs)
    if not shadowed and not is_active((*args, *kwargs.values())):
        out = kwargs.get("out")
        if type(out) is np.ndarray:
            if ARRAYS:
                check_array(o)
            if STATE.run is not None:
                STATE.run.writes(out)
        y = getattr(o, name)(*args, **kwargs)
        check_copied((o,), y)
        return y
    if ARRAYS and name not in _VIEWS:
        check_array(o)
    if shadowed and (name in _VIEWS or (name in ("conj", "conjugate") and o.dtype.kind == "f")):
        if name == "view":
            refuse_subclass(args, kwargs)
        return getattr(o, name)(*args, **kwargs)
    if name == "__array__":
        return METHODS[name](o, *args, **kwargs)
    if shadowed and o.dtype.kind == "V":
        if name == "copy":
            return store.load_records(o, Ellipsis)
        raise UnsupportedTypeError(records(f".{name}() of"))
    return call_method(_promoted(o), name, args, kwargs)


# these give views of a plain array, whose tangents are found by address
_VIEWS = {"transpose", "swapaxes", "view", "squeeze", "diagonal"}


def _promoted(o: np.ndarray) -> Any:
    return wrap(o, copy=False) if SHADOWED else o


METHODS: dict[str, Callable[..., Any]] = {}


def _method(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return enter_into(METHODS, names)


@_method("reshape")
def _reshape(o: Any, *shape: Any, order: str = "C", copy: Any = None) -> Any:
    new = shape[0] if len(shape) == 1 else shape
    options = {} if copy is None else {"copy": copy}
    return call(np.reshape, o, new, order=order, **options)


@_method("transpose")
def _transpose(o: Any, *axes: Any) -> Any:
    return call(np.transpose, o, axes[0] if len(axes) == 1 else axes or None)


@_method("clip")
def _clip(o: Any, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> Any:  # noqa: A002  (NumPy's names)
    return call(np.clip, o, min, max, **({} if out is None else {"out": out}), **options)


@_method("flatten")
def flatten(o: Any, order: str = "C") -> Any:
    """A flat copy."""
    flat = call(np.ravel, o, order=order)
    return cast(flat, None, copy=True)


@_method("__array__")
def _as_array(o: Any, dtype: Any = None, **options: Any) -> Any:
    """``o.__array__()`` called by the user; the dual refuses a call by NumPy's C code."""
    return call(np.asarray, o, dtype, **options)


@_method("copy")
def copy_of(o: Any, order: str = "C") -> Any:
    """A copy of an array with all tangents that its memory carries; a scalar itself."""
    return copied(explicit(o), order)


@_method("__copy__", "__deepcopy__")
def _copied_by_module(o: Any, _memo: Any = None) -> Any:
    return copy_of(o, "K")  # `copy.copy` keeps the layout


@_method("astype")
def _astype(
    o: Any,
    dtype: Any,
    order: str = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> Any:
    del subok
    if np.dtype(dtype).kind == "O" and type(o) is Array:
        made: Any = np.empty_like(plain(o), "O", order=order)
        for index in np.ndindex(*o.shape):
            made[index] = store.load_dual(o, index)
        return made
    np.empty(0, plain(o).dtype).astype(dtype, casting=casting)
    if type(o) is Scalar:
        return numpy_calls.call_scalar_type(np.dtype(dtype).type, (o,))
    converted = cast(o, dtype, copy=False)
    p = plain(o)
    made = p.astype(dtype, order=order, casting=casting, copy=copy)  # in NumPy's own layout
    return o if made is p else with_values(converted, made)


@_method("item")
def _item(o: Any, *index: Any) -> Any:
    if type(o) is Scalar:
        return python_number(o)
    if not index:
        if plain(o).size != 1:
            message = "can only convert an array of size 1 to a Python scalar"
            raise ValueError(message)
        return python_number(store.load_dual(o, (0,) * plain(o).ndim))
    if len(index) == 1 and type(index[0]) is tuple:
        (index,) = index
    if len(index) == 1 and plain(o).ndim != 1:
        value = plain(o)
        value.item(*index)  # raises what NumPy raises
        position = np.unravel_index(int(index[0]) % value.size, value.shape)
        index = tuple(int(i) for i in position)
    return python_number(store.load_dual(o, tuple(index)))


def python_number(x: Any) -> Any:
    """A dual NumPy scalar as a dual Python number."""
    if type(x) is Scalar:
        return Scalar(python_number(x.p), x.terms, x.tag)
    return x.item() if isinstance(x, np.generic) else x


@_method("tolist")
def _tolist(o: Any) -> Any:
    if type(o) is Scalar or plain(o).ndim == 0:
        return _item(o)
    return [_tolist(row) if isinstance_dual(row) else row.tolist() for row in o]


def refuse_subclass(args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Raise where ``view`` asks for a subclass, whose operators may mean something else."""
    for cls in (*args, *options.values()):
        if isinstance(cls, type) and issubclass(cls, np.ndarray) and cls is not np.ndarray:
            message = (
                f"cannot view an array that carries a derivative as {cls.__name__}: a subclass "
                "of ndarray may change what NumPy's functions mean, so only plain arrays can "
                "carry one. Use the array itself, and numpy.where instead of a mask"
            )
            raise UnsupportedTypeError(message)


@_method("view")
def _view(o: Any, dtype: Any = None, cls: Any = None, **options: Any) -> Any:
    refuse_subclass((dtype, cls), options)
    if dtype is None or dtype is np.ndarray or np.dtype(dtype) == plain(o).dtype:
        return store.load_dual(o, Ellipsis)
    raise DualLeakError(leak(f"a view of its bytes as {np.dtype(dtype)}", o))


@_method("fill")
def _fill(o: Any, value: Any) -> None:
    store.store(o, Ellipsis, value)


@_method("sort")
def _sort(
    o: Any, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> None:
    del kind, order, stable
    store.store(o, Ellipsis, call(np.sort, explicit(o), axis=axis))


@_method("partition")
def _partition(
    o: Any, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None
) -> None:
    del kind, order
    store.store(o, Ellipsis, call(np.partition, explicit(o), kth, axis=axis))


def with_axes(a: Any) -> Any:
    """An array as one with at least one axis, because ``np.unravel_index`` needs a shape."""
    return a if plain(a).ndim else call(np.reshape, a, 1)


@_method("put")
def put(o: Any, indices: Any, values: Any, mode: str = "raise") -> None:
    """Store values at flat indices, repeated as NumPy repeats them."""
    o, flat = with_axes(o), np.asarray(indices)
    size = plain(o).size
    if mode == "wrap":
        flat = flat % size
    elif mode == "clip":
        flat = np.clip(flat, 0, size - 1)
    elif flat.size and (flat.max() >= size or flat.min() < -size):
        bad = flat[(flat >= size) | (flat < -size)].ravel()[0]
        message = f"index {bad} is out of bounds for axis 0 with size {size}"
        raise IndexError(message)
    values = call(np.ravel, make_array(values) if is_active((values,)) else np.asarray(values))
    count = flat.size
    if not count or not plain(values).size:
        return
    if plain(values).size != count:
        values = values[np.arange(count) % plain(values).size]
    store.store(o, np.unravel_index(flat.ravel() % size, plain(o).shape), values)


@_method("__setitem__")
def _setitem(o: Any, index: Any, value: Any) -> None:
    store.store(o, index, value)


@_method("__getitem__")
def _getitem(o: Any, index: Any) -> Any:
    return store.load_dual(o, index) if type(o) is Array else store.load(o, index)


def _refused_method(name: str) -> None:
    @_method(name)
    def refuse(_o: Any, *_args: Any, **_kwargs: Any) -> Any:
        message = f"ndarray.{name} of an array whose values carry a derivative has no frule"
        if name == "resize":
            message = _RESIZED
        raise MissingRuleError(message)


@_method("setflags")
def _setflags(o: Any, *args: Any, **kwargs: Any) -> None:
    raw = plain(o)
    if STATE.run is not None:
        STATE.run.writes(raw)
    raw.setflags(*args, **kwargs)


_RESIZED = (
    "ndarray.resize moves an array to new memory, which a derivative call cannot follow: create "
    "the array with its final length, or use numpy.concatenate"
)


def _resize(o: np.ndarray, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """``o.resize(...)`` of a plain array, which NumPy refuses while this call refers to it."""
    try:
        o.resize(*args, **kwargs)
    except ValueError as error:
        raise MissingRuleError(_RESIZED) from error


for _name in ("itemset", "byteswap", "resize"):
    _refused_method(_name)


@_method("compress")
def _compress(o: Any, condition: Any, axis: Any = None, out: Any = None) -> Any:
    return call(np.compress, condition, o, axis, out)


@_method("ptp")
def _ptp(o: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    return call(np.ptp, o, axis, out, keepdims)
