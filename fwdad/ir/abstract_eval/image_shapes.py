"""The types of ``scipy.ndimage`` results, from shapes alone: its C code does not check lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.ir.ops import Operand, Value
from fwdad.ir.types import ArrayType, CannotInferError, Dimension, Size

Shape = Callable[[Callable[..., Any]], tuple[Dimension, ...]]


def _image(shape: Shape, names: str, *, default: Any = None) -> Any:
    """The rule for an image of some shape; its dtype is that of ``output``, else of ``input``."""
    places = {name: k for k, name in enumerate(names.split())}

    def result(args: Operand, kwargs: dict[str, Operand]) -> ArrayType:
        def argument(name: str, otherwise: Any = None) -> Any:
            k = places[name]
            return args[k] if len(args) > k else kwargs.get(name, otherwise)

        image, output = argument("input"), argument("output", default)
        image_dtype = image.type.dtype if isinstance(image, Value) else np.asarray(image).dtype
        if output is not None and not isinstance(output, (type, str, np.dtype)):
            raise CannotInferError("`output` is neither an array nor a dtype")
        dtype = image_dtype if output is None else np.dtype(output)
        if image_dtype.kind == "c" and dtype.kind != "c":
            dtype = np.promote_types(dtype, np.complex64)
        return ArrayType(dtype, shape(argument))

    return result


def _shape(x: Any) -> tuple[Dimension, ...]:
    return x.type.shape if isinstance(x, Value) else np.shape(x)


def _of_input(argument: Callable[..., Any]) -> tuple[Dimension, ...]:
    return _shape(argument("input"))


def _of_coordinates(argument: Callable[..., Any]) -> tuple[Dimension, ...]:
    return _shape(argument("coordinates"))[1:]


def _asked_for(argument: Callable[..., Any]) -> tuple[Dimension, ...]:
    wanted = argument("output_shape")
    if wanted is None:
        return _of_input(argument)
    if not isinstance(wanted, (tuple, list)):
        raise CannotInferError("`output_shape` is not a tuple")
    return tuple(Size() if isinstance(n, Value) else int(n) for n in wanted)


def _of_other_lengths(argument: Callable[..., Any]) -> tuple[Dimension, ...]:
    return tuple(Size() for _ in _of_input(argument))


def _rotated(argument: Callable[..., Any]) -> tuple[Dimension, ...]:
    axes, shape = argument("axes", (1, 0)), list(_of_input(argument))
    if argument("reshape", True) is not False:
        for k in axes:
            shape[k] = Size()
    return tuple(shape)


_FILTER = "input size footprint output"
_RANK = "input rank size footprint output"
_GREY = "input size footprint structure output"
_OF_INPUT = {
    "sobel": "input axis output", "prewitt": "input axis output", "laplace": "input output",
    "gaussian_filter": "input sigma order output", "uniform_filter": "input size output",
    "gaussian_filter1d": "input sigma axis order output",
    "gaussian_laplace": "input sigma output", "gaussian_gradient_magnitude": "input sigma output",
    "morphological_gradient": _GREY, "morphological_laplace": _GREY,
    "white_tophat": _GREY, "black_tophat": _GREY,
    "shift": "input shift output",
    "median_filter": _FILTER, "minimum_filter": _FILTER, "maximum_filter": _FILTER,
    "minimum_filter1d": "input size axis output", "maximum_filter1d": "input size axis output",
    "rank_filter": _RANK, "percentile_filter": _RANK,
    "grey_erosion": _GREY, "grey_dilation": _GREY, "grey_opening": _GREY, "grey_closing": _GREY,
}  # fmt: skip

_IMAGES = {
    **{name: _image(_of_input, names) for name, names in _OF_INPUT.items()},
    "map_coordinates": _image(_of_coordinates, "input coordinates output"),
    "affine_transform": _image(_asked_for, "input matrix offset output_shape output"),
    "zoom": _image(_of_other_lengths, "input zoom output"),
    "rotate": _image(_rotated, "input angle axes reshape output"),
    "spline_filter": _image(_of_input, "input order output", default=np.float64),
    "spline_filter1d": _image(_of_input, "input order axis output", default=np.float64),
}
BY_NAME = {f"scipy.ndimage.{name}": rule for name, rule in _IMAGES.items()}
"""By dotted name, the rule that tells the type of what a function returns."""
