"""Reversible functions as GPU kernels: one thread per instance."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np

from fwdad.codegen.device.source import device_source
from fwdad.codegen.numba_support import CannotCompileError
from fwdad.errors import UnsupportedTypeError, type_in_words
from fwdad.reversible.arguments.kinds import Kind, Numeric
from fwdad.reversible.function import Reversible
from fwdad.reversible.kernel_program import kernel_program
from fwdad.reversible.lowering.definition import Definition, Lowered
from fwdad.reversible.lowering.function_builder import define_source

_THREADS = 128


def cuda_kernel(f: Reversible) -> CudaKernel:
    """Turn a reversible function into one that runs over arrays on a GPU, by ``numba.cuda``.

    Parameters
    ----------
    f : Reversible
        A function of numbers, and of arrays that are one instance's own.

    Returns
    -------
    CudaKernel

    Raises
    ------
    UnsupportedTypeError
        If f is not under :func:`reversible`.

    Notes
    -----
    Run-time checks are off: a kernel cannot raise. Arrays that begin inside f (ancillas) are a
    thread's own memory, of a length that is written out (``np.zeros(3)``) or is that of an argument
    (``np.zeros(len(x))``): a kernel is compiled for each shape of an instance's arrays. With
    ``NUMBA_ENABLE_CUDASIM=1`` in the environment, before Numba is imported, kernels run in Numba's
    simulator.

    Examples
    --------
    ::

        kernel = cuda_kernel(step)
        x, v, h = kernel(x, v, 0.1)  # x, v of shape (n,): step(x[i], v[i], 0.1) for each i
        x, v, h = kernel.inverse(x, v, h)
        x_bar, v_bar, h_bar = kernel.adjoint((x, v, h), (x_bar, v_bar, None))
    """
    if not isinstance(f, Reversible):
        message = f"expected a function under @reversible; got {type_in_words(f)}"
        raise UnsupportedTypeError(message)
    return CudaKernel(f)


class CudaKernel:
    """A reversible function over the instances in the first axis of its arrays.

    Attributes
    ----------
    f : Reversible
        The function of one instance.
    """

    def __init__(self, f: Reversible) -> None:
        self.f = f
        self._kernels: dict[Any, Any] = {}
        self._reduce: Any = None

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        """Run f for each instance.

        Parameters
        ----------
        *args : array, shape (n, ...), or number
            An array holds one number or array for each instance; all instances read a number, which
            must not be updated. Arrays may be on the device: whatever has
            ``__cuda_array_interface__`` (of Numba, CuPy, PyTorch).

        Returns
        -------
        tuple
            The updated arguments; the caller's are as they were. NumPy arrays, or, where an
            argument is on the device, Numba's device arrays (``cupy.asarray(y)`` makes CuPy's
            of them without a copy).

        Raises
        ------
        UnsupportedTypeError
            For arguments of other types, arrays of several lengths, and numbers that f updates.
        """
        return self._run(args, (), self.f.inverse, adjoint=False)

    def inverse(self, *args: Any) -> tuple[Any, ...]:
        """Undo f for each instance. Parameters and result are those of a call."""
        return self._run(args, (), not self.f.inverse, adjoint=False)

    def adjoint(self, args: tuple[Any, ...], bars: tuple[Any, ...]) -> tuple[Any, ...]:
        """Pull cotangents back.

        Parameters
        ----------
        args : tuple
            What f returned.
        bars : tuple
            The cotangents of that, arrays of the same shapes; None for zero.

        Returns
        -------
        tuple
            The cotangents of f's arguments; for a number that all instances read their sum, None
            for integers.
        """
        return self._run(args, bars, self.f.inverse, adjoint=True)

    def _run(
        self, args: tuple[Any, ...], bars: tuple[Any, ...], inverse: bool, *, adjoint: bool
    ) -> tuple[Any, ...]:
        from numba import cuda  # noqa: PLC0415  (import fwdad does not import Numba)

        args, bars = (tuple(_as_device_array(x, cuda) for x in values) for values in (args, bars))
        stays = any(_on_device(x) for x in (*args, *bars))
        lengths = {a.shape[0] for a in args if _is_array(a) and a.ndim}
        if len(lengths) != 1:
            what = sorted(lengths) if lengths else [type(a).__name__ for a in args]
            message = f"the arrays must have one length along their first axis; got {what}"
            raise UnsupportedTypeError(message)
        (n,) = lengths
        kinds = tuple(_instance_kind(a) for a in args)
        copies = [_copied(a, cuda) if _is_array(a) else a for a in args]
        if adjoint:
            copies += _cotangents(args, bars, kinds, n, cuda)
        shapes = tuple(v.shape[1:] if _is_array(v) else None for v in copies)
        key = (kinds, shapes, inverse, adjoint)
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = self._kernels[key] = self._kernel(kinds, copies, inverse, adjoint, cuda)
        if n:
            self._launch(kernel, n, copies)
        results = copies[len(args) :] if adjoint else copies
        if adjoint:
            pulled = iter(results)
            results = [next(pulled) if k.active else None for k in kinds]
            # what all instances read: their cotangents' sum, a number
            results = [
                bar if bar is None or _is_array(a) else self._sum(bar, cuda)
                for a, bar in zip(args, results, strict=True)
            ]
        return tuple(x.copy_to_host() if _on_device(x) and not stays else x for x in results)

    def _launch(self, kernel: Any, n: int, arguments: list[Any]) -> None:
        """Run it; at its first run with these types Numba compiles it."""
        from numba.core.errors import NumbaError  # noqa: PLC0415  (as above)

        try:
            kernel[(n + _THREADS - 1) // _THREADS, _THREADS](*arguments)
        except NumbaError as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            reason = next((line for line in lines if not line.startswith("Failed in ")), "")
            message = (
                f"{self.f.__name__} cannot be compiled for the device: {reason} "
                "(Numba's whole message is above)"
            )
            raise UnsupportedTypeError(message) from error

    def _sum(self, x: Any, cuda: Any) -> Any:
        """Add up an array on the device."""
        if self._reduce is None:
            self._reduce = cuda.reduce(_added)
        return self._reduce(x) if x.size else x.dtype.type(0)

    def _kernel(
        self, kinds: tuple[Kind, ...], values: list[Any], inverse: bool, adjoint: bool, cuda: Any
    ) -> Any:
        definition = Definition(self.f.definition.f, checked=False, tolerance=0.0)
        lowered = definition.lowered(kinds, inverse, adjoint)
        flat = [*kinds, *(k for k in kinds if k.active)] if adjoint else list(kinds)
        names = [f"a{k}" for k in range(len(values))]
        updated = definition.updated(kinds)
        targets = [k for k in sorted(updated) if not flat[k].is_array]
        if any(not _is_array(values[k]) for k in targets):
            message = (
                f"{self.f.__name__} updates a number that all instances share: give an array of it"
            )
            raise UnsupportedTypeError(message)
        if adjoint:
            targets += [k for k in range(len(kinds), len(flat)) if not flat[k].is_array]
        texts = [
            f"{name}[i]" if _is_array(v) else name for name, v in zip(names, values, strict=True)
        ]
        device, constants = _device_function(lowered, _of_one_instance(flat, values), cuda)
        call = f"device({', '.join([*texts, *constants])})"
        left = "".join(f"{texts[k]}, " for k in targets)
        code = (
            f"def kernel({', '.join(names)}):\n"
            f"    i = cuda.grid(1)\n"
            f"    if i < {names[_first_array(values)]}.shape[0]:\n"
            f"        {f'{left}= {call}' if targets else call}\n"
        )
        namespace = {"cuda": cuda, "device": device, **constants}
        return cuda.jit(define_source(code, "kernel", namespace))


def _of_one_instance(kinds: list[Kind], values: list[Any]) -> tuple[Any, ...]:
    """Examples of what the function of one instance takes."""
    return tuple(
        np.zeros(v.shape[1:], v.dtype) if kind.is_array else kind.sample()
        for kind, v in zip(kinds, values, strict=True)
    )


def _device_function(lowered: Lowered, args: tuple[Any, ...], cuda: Any) -> Any:
    """A generated function for the device, and constants that it takes behind its arguments."""
    program, captured = kernel_program(lowered.function, args)
    try:
        source = device_source(program)
    except CannotCompileError as error:
        raise UnsupportedTypeError(error.what) from error
    namespace = {
        name: cuda.jit(device=True)(x) if isinstance(x, FunctionType) else x
        for name, x in source.namespace.items()
    }
    function = define_source(source.code, source.name, {**namespace, "cuda": cuda})
    constants = {f"constant_{k}": value for k, value in enumerate(captured)}
    return cuda.jit(device=True)(function), constants


def _on_device(x: Any) -> bool:
    return hasattr(x, "copy_to_host")


def _is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray) or _on_device(x)


def _as_device_array(x: Any, cuda: Any) -> Any:
    """A device array of any library as Numba's view of it; all else as it is."""
    foreign = hasattr(x, "__cuda_array_interface__") and not _on_device(x)
    return cuda.as_cuda_array(x) if foreign else x


def _copied(a: Any, cuda: Any) -> Any:
    """A copy on the device, laid out row by row."""
    if not _on_device(a):
        return cuda.to_device(np.array(a, order="C"))
    new = cuda.device_array(a.shape, a.dtype)
    if a.size:
        new[:] = a
    return new


def _added(a: Any, b: Any) -> Any:
    return a + b


def _first_array(values: list[Any]) -> int:
    return next(k for k, v in enumerate(values) if _is_array(v))


def _instance_kind(a: Any) -> Numeric:
    if _is_array(a) and a.dtype.kind in "biufc" and a.ndim:
        return Numeric(a.dtype.name, a.ndim - 1, a.ndim > 1)
    if isinstance(a, (bool, int, float, complex, np.number)):
        return Numeric(np.asarray(a).dtype.name)
    message = f"a kernel takes arrays and numbers; got {type_in_words(a)}"
    raise UnsupportedTypeError(message)


def _cotangents(
    args: tuple[Any, ...], bars: tuple[Any, ...], kinds: tuple[Kind, ...], n: int, cuda: Any
) -> list[Any]:
    """Arrays for the cotangents: one for each instance also of numbers that all share."""
    cotangents = []
    for a, bar, kind in zip(args, bars, kinds, strict=True):
        if not kind.active:
            continue
        shape = a.shape if _is_array(a) else (n,)
        if _on_device(bar):
            if tuple(bar.shape) != tuple(shape) or bar.dtype != kind.dtype:
                message = (
                    f"a cotangent on the device has the shape and dtype of its value: got "
                    f"{bar.dtype}{tuple(bar.shape)}, not {kind.dtype}{tuple(shape)}"
                )
                raise UnsupportedTypeError(message)
            cotangents.append(_copied(bar, cuda))
            continue
        if bar is None:
            cotangent = cuda.device_array(shape, kind.dtype)
            if cotangent.size:
                cotangent[:] = 0
        else:
            cotangent = np.zeros(shape, kind.dtype)
            cotangent[...] = bar if _is_array(a) else np.asarray(bar) / n
            cotangent = cuda.to_device(cotangent)
        cotangents.append(cotangent)
    return cotangents


__all__ = ["CudaKernel", "cuda_kernel"]
