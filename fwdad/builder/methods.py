"""The attributes and methods of dual arrays and scalars, and of plain arrays with tangents."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.builder import numpy_calls, store
from fwdad.builder.activity import is_active
from fwdad.builder.apply import primal_part
from fwdad.builder.creation import cast, make_array
from fwdad.builder.dispatch import call
from fwdad.builder.dual import (
    Array,
    Scalar,
    explicit,
    isinstance_dual,
    leak,
    records,
    root_of,
    wrap,
)
from fwdad.builder.memory import SHADOWED, find_shadow, untouched
from fwdad.builder.run import STATE
from fwdad.errors import DualLeakError, MissingRuleError, UnsupportedTypeError
from fwdad.tangents.chunk import Chunk, plain

# methods with the arguments of the function of that name
_FUNCTIONS: dict[str, Any] = {
    "sum": np.sum, "mean": np.mean, "prod": np.prod, "var": np.var, "std": np.std, "max": np.max,
    "min": np.min, "cumsum": np.cumsum, "cumprod": np.cumprod, "trace": np.trace,
    "diagonal": np.diagonal, "take": np.take, "repeat": np.repeat, "squeeze": np.squeeze,
    "swapaxes": np.swapaxes, "conj": np.conj, "conjugate": np.conjugate,
    "dot": np.dot, "choose": np.choose, "ravel": np.ravel, "round": np.round,
}  # fmt: skip

# methods whose value carries no tangent
_CONSTANT = {"argmax", "argmin", "argsort", "argpartition", "any", "all", "nonzero", "searchsorted",
             "is_integer"}  # fmt: skip
_LEAKS = {"as_integer_ratio", "hex", "tobytes", "tofile", "dump", "dumps", "tostring",
          "__array__", "__reduce__", "view_bytes",
          "getfield", "setfield", "__array_interface__", "__dlpack__"}  # fmt: skip


def call_method(o: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``o.name(...)`` of a dual."""
    if name in ("conjugate", "conj") and not args and not kwargs:
        if plain(o).dtype.kind == "f" if type(o) is not Scalar else _is_real(o):
            return o  # itself, not a copy
        if type(o) is Scalar:
            return _part(np.conjugate, o)
    operation = _DUNDERS.get(name)
    if operation is not None:
        return operation(o, *args)
    own = _METHODS.get(name)
    if own is not None:
        return own(o, *args, **kwargs)
    function = _FUNCTIONS.get(name)
    if function is not None:
        return call(function, o, *args, **kwargs)
    if name in _CONSTANT:
        rest = {k: primal_part(v) for k, v in kwargs.items()}
        return getattr(plain(o), name)(*primal_part(args), **rest)
    if name in _LEAKS:
        raise DualLeakError(leak(f"plain data (through .{name}())", o))
    if type(o) is np.ndarray:
        message = f"ndarray.{name} with an argument that carries a derivative has no frule"
        raise MissingRuleError(message)
    return call(attribute(o, name), *args, **kwargs)


def _operation(function: Any, *, reflected: bool) -> Callable[..., Any]:
    if reflected:
        return lambda o, other: function(explicit(other), explicit(o))
    return lambda o, *other: function(explicit(o), *(explicit(x) for x in other))


_DUNDERS = {
    f"__{prefix}{name}__": _operation(getattr(operator, name), reflected=bool(prefix))
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
    for prefix in ("", "r")
} | {
    f"__{name}__": _operation(getattr(operator, name), reflected=False)
    for name in ("neg", "abs", "pos")
}

_INPLACE = {
    f"__{name}__": name
    for name in ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "imatmul")
}
INPLACE_HOOKS: dict[str, Any] = {}
"""The in-place operators, which are built on this module."""

_WRITING = {"sort", "fill", "put", "partition", "itemset", "resize", "setflags", "byteswap",
            "__setitem__"}  # fmt: skip


def call_plain_method(
    o: np.ndarray, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``o.name(...)`` of a plain array, whose memory or arguments may carry tangents."""
    shadowed = bool(SHADOWED) and find_shadow(o) is not None
    if name in _INPLACE:
        return INPLACE_HOOKS[_INPLACE[name]](o, *args)
    if name in _WRITING:
        writer = _METHODS.get(name)
        if writer is not None and (shadowed or is_active((*args, *kwargs.values()))):
            return writer(o, *args, **kwargs)
        if STATE.run is not None:
            STATE.run.log.array(o)
        return getattr(o, name)(*args, **kwargs)
    if not shadowed and not is_active((*args, *kwargs.values())):
        out = kwargs.get("out")
        if type(out) is np.ndarray and STATE.run is not None:
            STATE.run.log.array(out)
        return getattr(o, name)(*args, **kwargs)
    if shadowed and (name in _VIEWS or (name in ("conj", "conjugate") and o.dtype.kind == "f")):
        return getattr(o, name)(*args, **kwargs)
    if shadowed and o.dtype.kind == "V":
        if name == "copy":
            return store.load_records(o, Ellipsis)
        raise UnsupportedTypeError(records(f".{name}() of"))
    return call_method(_promoted(o), name, args, kwargs)


# these give views of a plain array, whose tangents are found by address
_VIEWS = {"transpose", "swapaxes", "view", "squeeze", "diagonal"}


def _promoted(o: np.ndarray) -> Any:
    return wrap(o, copy=False) if SHADOWED else o


_METHODS: dict[str, Callable[..., Any]] = {}


def _method(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            _METHODS[name] = body
        return body

    return register


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
def _flatten(o: Any, order: str = "C") -> Any:
    flat = call(np.ravel, o, order=order)
    return cast(flat, None, copy=True)


@_method("copy", "__copy__")
def _copy(o: Any, order: str = "C") -> Any:
    if type(o) is Scalar:
        return o
    if type(o) is Array:
        p = o.p.copy() if order == "C" or isinstance_dual(o.p) else o.p.copy(order)
        return Array(p, o.t, o.tag)
    return o.copy(order)


@_method("__deepcopy__")
def _deepcopy(o: Any, _memo: Any = None) -> Any:
    return _copy(o)


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
        made: Any = np.empty(o.shape, dtype="O")
        for index in np.ndindex(*o.shape):
            made[index] = store.load_dual(o, index)
        return made
    np.empty(0, plain(o).dtype).astype(dtype, casting=casting)
    if type(o) is Scalar:
        return numpy_calls.call_scalar_type(np.dtype(dtype).type, (o,))
    converted = cast(o, dtype, copy=False)
    if isinstance_dual(o.p):
        return converted if converted is not o or not copy else _copy(o)
    made = o.p.astype(dtype, order=order, casting=casting, copy=copy)  # in NumPy's own layout
    return o if made is o.p else Array(made, converted.t, o.tag)


@_method("item")
def _item(o: Any, *index: Any) -> Any:
    if type(o) is Scalar:
        return _python(o)
    if not index:
        if plain(o).size != 1:
            message = "can only convert an array of size 1 to a Python scalar"
            raise ValueError(message)
        return _python(store.load_dual(o, (0,) * plain(o).ndim))
    if len(index) == 1 and type(index[0]) is tuple:
        (index,) = index
    if len(index) == 1 and plain(o).ndim != 1:
        index = tuple(int(i) for i in np.unravel_index(index[0], plain(o).shape))
    return _python(store.load_dual(o, tuple(index)))


def _python(x: Any) -> Any:
    """A dual NumPy scalar as a dual Python number."""
    if type(x) is Scalar:
        return Scalar(_python(x.p), x.terms, x.tag)
    return x.item() if isinstance(x, np.generic) else x


@_method("tolist")
def _tolist(o: Any) -> Any:
    if type(o) is Scalar or plain(o).ndim == 0:
        return _item(o)
    return [_tolist(row) if isinstance_dual(row) else row.tolist() for row in o]


@_method("view")
def _view(o: Any, dtype: Any = None, **_types: Any) -> Any:
    if dtype is None or (isinstance(dtype, type) and issubclass(dtype, np.ndarray)):
        return store.load_dual(o, Ellipsis)
    if np.dtype(dtype) == plain(o).dtype:
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


@_method("put")
def _put(o: Any, indices: Any, values: Any, mode: str = "raise") -> None:
    o, flat = _with_axes(o), np.asarray(indices)
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
        raise MissingRuleError(message)


@_method("setflags")
def _setflags(o: Any, *args: Any, **kwargs: Any) -> None:
    raw = plain(o)
    if STATE.run is not None:
        STATE.run.log.array(raw)
    raw.setflags(*args, **kwargs)


for _name in ("itemset", "byteswap", "resize"):
    _refused_method(_name)


@_method("compress")
def _compress(o: Any, condition: Any, axis: Any = None, out: Any = None) -> Any:
    return call(np.compress, condition, o, axis, out)


@_method("ptp")
def _ptp(o: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    return call(np.ptp, o, axis, out, keepdims)


# -- flat


class Flat:
    """``x.flat`` of a dual array."""

    def __init__(self, base: Any) -> None:
        self.base = base
        self.index = 0

    @property
    def coords(self) -> tuple[int, ...]:
        """The index of the next element."""
        shape, rest, found = plain(self.base).shape, self.index, []
        for length in shape[:0:-1]:
            rest, i = divmod(rest, length)
            found.append(i)
        return (rest, *found[::-1]) if shape else ()

    def __next__(self) -> Any:
        if self.index >= len(self):
            raise StopIteration
        self.index += 1
        return self[self.index - 1]

    def __getitem__(self, index: Any) -> Any:
        return _flat_read(self.base, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        flat_store(self, index, value)

    def __len__(self) -> int:
        return int(plain(self.base).size)

    def __iter__(self) -> Any:
        return self

    def copy(self) -> Any:
        """A flat copy."""
        return _flatten(self.base)


def flat_load(flat: Any, index: Any) -> Any:
    """``a.flat[index]`` of a plain array."""
    base = flat.base
    if SHADOWED and find_shadow(base) is not None:
        return _flat_read(base, index)
    return flat[index]


def _flat_index(base: Any, index: Any) -> Any:
    shape = plain(base).shape
    if type(index) is tuple and len(index) == 1:
        (index,) = index
    if isinstance(index, (int, np.integer)) and not isinstance(index, bool):
        size = plain(base).size
        if not -size <= index < size:
            message = f"index {index} is out of bounds for size {size}"
            raise IndexError(message)
        return tuple(int(i) for i in np.unravel_index(int(index) % size, shape))
    flat = np.arange(plain(base).size)[index]
    return np.unravel_index(flat, shape)


def _with_axes(a: Any) -> Any:
    """An array, one without axes as a window with one: `np.unravel_index` wants a shape."""
    return a if plain(a).ndim else call(np.reshape, a, 1)


def _flat_read(base: Any, index: Any) -> Any:
    base = _with_axes(base)
    at = _flat_index(base, index)
    return store.load_dual(base, at) if type(base) is Array else store.load(base, at)


def flat_store(flat: Any, index: Any, value: Any) -> None:
    """``a.flat[index] = value``; values are repeated as NumPy does."""
    base = _with_axes(flat.base)
    at = _flat_index(base, index)
    if reads_while_it_writes(base, value):
        store_in_order(base, at, value)
        return
    if isinstance(value, (list, tuple)) or np.ndim(plain(value)):
        _put(base, np.ravel_multi_index(at, plain(base).shape), value)
        return
    store.store(base, at, value)


def reads_while_it_writes(a: Any, value: Any) -> bool:
    """Whether values are in the memory that they go to; NumPy casts others before it stores any."""
    if not isinstance(value, np.ndarray) or plain(value).dtype != plain(a).dtype:
        return False
    return np.may_share_memory(plain(a), plain(value))


def store_in_order(base: Any, at: Any, value: Any) -> None:
    """NumPy's flat assignment is element by element: an overlapping value is read as it changes."""
    shape = plain(value).shape
    places = [tuple(int(i) for i in row) for row in zip(*(np.ravel(i) for i in at), strict=True)]
    for k, place in enumerate(places):
        index = tuple(int(i) for i in np.unravel_index(k % plain(value).size, shape))
        item = store.load_dual(value, index) if type(value) is Array else store.load(value, index)
        store.store(base, place, item)


def _set_flat(o: Any, value: Any) -> None:
    """``a.flat = v``: NumPy copies v first where it does not lie column by column as a does."""
    o, places = _with_axes(o), np.arange(plain(o).size)
    copied = plain(o).flags.f_contiguous and not getattr(value, "flags", o.flags).f_contiguous
    if not copied and reads_while_it_writes(o, value):
        store_in_order(o, np.unravel_index(places, plain(o).shape), value)
    else:
        _put(o, places, value)


def set_array_attribute(o: Any, name: str, value: Any) -> None:
    """``a.real = v``, ``a.imag = v``, ``a.flat = v`` are stores; ``shape`` is a plain attribute."""
    if name in ("real", "imag"):
        store.store(getattr(o, name), Ellipsis, value)
    elif name == "flat":
        _set_flat(o, value)
    elif name == "T":
        message = "attribute 'T' of an array is not writable"
        raise AttributeError(message)
    elif type(o) is Array and name == "shape":
        o.p, o._t = np.reshape(o.p, value), np.reshape(o.t, value)
    elif type(o) is Array:
        message = f"setting .{name} of an array that carries a derivative: use x.reshape(...)"
        raise MissingRuleError(message)
    else:
        setattr(o, name, value)


# -- attributes


def _primal(name: str) -> property:
    return property(lambda o: getattr(plain(o), name))


def _refused(name: str) -> property:
    def get(o: Any) -> Any:
        raise DualLeakError(leak(f"a plain array (through .{name})", o))

    return property(get)


def _array_wrap(_o: Any, made: Any, _context: Any = None, return_scalar: bool = False) -> Any:
    """What NumPy's own Python calls to restore a subclass: a dual array has none to restore."""
    return made[()] if return_scalar and np.ndim(plain(made)) == 0 else made


for _name in ("shape", "ndim", "size", "dtype", "itemsize", "nbytes", "strides", "flags", "base"):
    setattr(Array, _name, _primal(_name))
for _name in ("ctypes", "data"):
    setattr(Array, _name, _refused(_name))
Array.__array_wrap__ = _array_wrap  # type: ignore[attr-defined]


def _transposed(o: Array) -> Any:
    """``o.T``: without a rule where plain numbers are in the array, and none were stored."""
    t = o._t
    simple = type(o.p) is np.ndarray and isinstance(t, Chunk) and o.tag.alive
    if simple and (not SHADOWED or untouched(o.p)):
        return Array(o.p.T, t.T, o.tag, root_of(o))
    return call(np.transpose, o)


Array.T = property(_transposed)  # type: ignore[attr-defined]
Array.mT = property(lambda o: call(np.swapaxes, o, -1, -2))  # type: ignore[attr-defined]
Array.real = property(lambda o: call(np.real, o))  # type: ignore[attr-defined]
Array.imag = property(lambda o: call(np.imag, o))  # type: ignore[attr-defined]
Array.flat = property(Flat)  # type: ignore[attr-defined]
Scalar.real = property(lambda o: o if _is_real(o) else _part(np.real, o))  # type: ignore[attr-defined]
Scalar.imag = property(lambda o: plain(o).imag if _is_real(o) else _part(np.imag, o))  # type: ignore[attr-defined]
for _name in ("shape", "ndim", "size", "dtype", "itemsize", "nbytes"):
    setattr(Scalar, _name, _primal(_name))
Scalar.T = property(lambda o: o)  # type: ignore[attr-defined]


def _is_real(o: Any) -> bool:
    return not isinstance(plain(o), (complex, np.complexfloating))


def _part(function: Any, o: Any) -> Any:
    part = call(function, o)
    return (
        _python(part)
        if isinstance(plain(o), complex) and not isinstance(plain(o), np.generic)
        else part
    )


def attribute(o: Any, name: str) -> Any:
    """``o.name`` of a dual."""
    try:
        return getattr(o, name)
    except AttributeError:
        pass
    return _of_primal(o, name)


def _of_primal(o: Any, name: str) -> Any:
    """An attribute that only the primal of a dual has: a method that is known, or an error."""
    if name.startswith("__") or not hasattr(plain(o), name):
        message = f"{type(plain(o)).__name__!r} object has no attribute {name!r}"
        raise AttributeError(message)
    if name in _METHODS or name in _FUNCTIONS or name in _CONSTANT or name in _LEAKS:
        return lambda *args, **kwargs: call_method(o, name, args, kwargs)
    message = f"attribute {name!r} of a value that carries a derivative has no frule"
    raise MissingRuleError(message)


def _inherit(cls: type, *primals: type) -> None:
    """Give a class of duals the names of its primals that it lacks.

    One by one: with a ``__getattr__`` every look at a slot of a dual would be three times as slow.
    """

    def of_primal(name: str) -> property:
        return property(lambda o: _of_primal(o, name))

    for name in {name for primal in primals for name in dir(primal)}:
        if not name.startswith("__") and not hasattr(cls, name):
            setattr(cls, name, of_primal(name))


_inherit(Array, np.ndarray)
_inherit(Scalar, float, complex, np.float64, np.complex128, np.longdouble)
Array.__copy__ = lambda o: _copy(o)  # type: ignore[attr-defined]
Array.__deepcopy__ = lambda o, memo: _copy(o)  # type: ignore[attr-defined]
