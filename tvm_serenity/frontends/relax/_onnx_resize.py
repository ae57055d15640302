"""ONNX's Resize, and its predecessor Upsample, in all versions.

Relax's operator resizes images if it maps coordinates as ONNX does, by the ratio of sizes. Other
scales, axes and ranks are resized axis by axis, with constant indices and weights.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import relax

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends.model_file import SIZED
from tvm_serenity.frontends.relax._onnx_values import Attributes, constant, dtype_of, shape_of

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class _Axis:
    """An axis of ``extent`` elements to resize to ``size``, by a factor of ``scale``."""

    index: int
    extent: int
    size: int
    scale: np.float32

    @property
    def is_ratio(self) -> bool:
        """Whether the factor is the ratio of the sizes."""
        return abs(self.extent * float(self.scale) - self.size) <= 1e-4


@dataclass(frozen=True)
class _Form:
    """The coordinate mapping and the interpolation of an operator."""

    mode: str
    coordinates: str
    nearest: str
    cubic: np.float32
    inside: bool

    @staticmethod
    def of(attributes: Attributes, old: bool) -> "_Form":
        """Return the form of attributes; ``old``: before opset 11, with one mapping for all."""

        def text(name: str, usual: str) -> str:
            return str(attributes[name].decode()) if name in attributes else usual

        return _Form(
            text("mode", "nearest"),
            "asymmetric" if old else text("coordinate_transformation_mode", "half_pixel"),
            "simple" if old else text("nearest_mode", "round_prefer_floor"),
            np.float32(attributes.get("cubic_coeff_a", -0.75)),
            bool(attributes.get("exclude_outside", 0)),
        )


def upsample(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: Attributes, _: int) -> Any:
    """Return Upsample, whose scales are an attribute before opset 9, then an input."""
    stated = attributes.get("scales")
    scales = constant(inputs, 1) if stated is None else np.asarray(stated, np.float32)
    return _resized(bb, inputs[0], attributes, (scales, None), old=True)


def resize(
    bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: Attributes, opset: int
) -> Any:
    """Return Resize, or None for tf_crop_and_resize, which is left to TVM."""
    if attributes.get("coordinate_transformation_mode") == b"tf_crop_and_resize":
        if "axes" in attributes or "keep_aspect_ratio_policy" in attributes:
            raise UnsupportedError(
                "tf_crop_and_resize with axes or keep_aspect_ratio_policy is not supported"
            )
        return None
    if opset < 11:
        return _resized(bb, inputs[0], attributes, (constant(inputs, 1), None), old=True)
    asked = constant(inputs, 2), constant(inputs, 3)
    return _resized(bb, inputs[0], attributes, asked, old=False)


def _resized(
    bb: relax.BlockBuilder,
    x: relax.Expr,
    attributes: Attributes,
    asked: tuple[Array | None, Array | None],
    old: bool,
) -> Any:
    scales, sizes = (None if a is None or not a.size else a for a in asked)
    if scales is None and sizes is None:
        raise UnsupportedError(f"its target sizes are known only at run time; {SIZED}")
    if attributes.get("antialias", 0):
        raise UnsupportedError("antialias is not supported; resize without it")
    axes, form = _axes(shape_of(x), attributes, scales, sizes), _Form.of(attributes, old)
    if form.mode not in ("nearest", "linear", "cubic", "bilinear"):
        raise UnsupportedError(f"mode {form.mode} is not supported; use nearest, linear or cubic")
    if _is_image(axes, form, len(shape_of(x))):
        return _image(x, axes, form)
    if form.mode != "nearest" and not dtype_of(x).startswith("float"):
        raise UnsupportedError("interpolation of integers is not supported; cast to float32")
    for axis in axes:
        if axis.extent != axis.size or not axis.is_ratio:
            x = _along(bb, x, axis, form)
    return x


def _axes(
    shape: Sequence[int], attributes: Attributes, scales: Array | None, sizes: Array | None
) -> list[_Axis]:
    """Return the axes to resize; other axes keep their extents."""
    rank = len(shape)
    places = [int(a) % rank for a in attributes.get("axes", range(rank))]
    given = scales if scales is not None else sizes
    if given is None or given.size != len(places):
        raise UnsupportedError(
            f"it resizes {len(places)} axes, but the number of its scales or sizes differs"
        )
    if scales is not None:
        factors = [np.float32(s) for s in scales]
        return [
            _Axis(a, shape[a], int(np.floor(np.float32(shape[a]) * s)), s)
            for a, s in zip(places, factors, strict=True)
        ]
    wanted = [int(s) for s in given]
    factors = [np.float32(s) / np.float32(shape[a]) for a, s in zip(places, wanted, strict=True)]
    policy = attributes.get("keep_aspect_ratio_policy", b"stretch").decode()
    if policy != "stretch":
        common = min(factors) if policy == "not_larger" else max(factors)
        factors = [common] * len(places)
        wanted = [int(np.floor(np.float32(shape[a]) * common + np.float32(0.5))) for a in places]
    parts = zip(places, wanted, factors, strict=True)
    return [_Axis(a, shape[a], size, factor) for a, size, factor in parts]


def _is_image(axes: Sequence[_Axis], form: _Form, rank: int) -> bool:
    """Return whether Relax's image operator computes the same."""
    moved = [a for a in axes if a.extent != a.size or not a.is_ratio]
    shrunk = any(a.scale < 1 for a in axes)
    return (
        rank == 4
        and all(a.index > 1 and a.is_ratio for a in moved)
        and form.coordinates != "half_pixel_symmetric"
        and not (
            form.coordinates == "align_corners" and any(a.size == 1 for a in axes if a.index > 1)
        )
        and not (form.nearest == "simple" and shrunk)
    )


def _image(x: relax.Expr, axes: Sequence[_Axis], form: _Form) -> Any:
    sizes = {a.index: a.size for a in axes}
    shape = shape_of(x)
    methods = {"nearest": "nearest_neighbor", "bilinear": "linear"}
    return relax.op.image.resize2d(
        x,
        size=relax.ShapeExpr([sizes.get(axis, shape[axis]) for axis in (2, 3)]),
        roi=[0.0] * 4,
        layout="NCHW",
        method=methods.get(form.mode, form.mode),
        coordinate_transformation_mode=form.coordinates,
        rounding_method="floor" if form.nearest == "simple" else form.nearest,
        cubic_alpha=float(form.cubic),
        cubic_exclude=int(form.inside),
        extrapolation_value=0.0,
    )


def _along(bb: relax.BlockBuilder, x: relax.Expr, axis: _Axis, form: _Form) -> Any:
    """Return ``x`` resized along one axis."""
    at = _coordinates(axis, form.coordinates)
    if form.mode == "nearest":
        return _taken(bb, x, _nearest(at, axis, form.nearest), axis)
    places, weights = _cubic(at, axis, form) if form.mode == "cubic" else _linear(at, axis)
    rank, total = len(shape_of(x)), None
    along = [-1 if i == axis.index else 1 for i in range(rank)]
    for place, weight in zip(places, weights, strict=True):
        factor = relax.const(weight.reshape(along).astype(dtype_of(x)))
        part = bb.emit(relax.op.multiply(_taken(bb, x, place, axis), factor))
        total = part if total is None else bb.emit(relax.op.add(total, part))
    return total


def _taken(bb: relax.BlockBuilder, x: relax.Expr, places: Array, axis: _Axis) -> Any:
    index = relax.const(np.clip(places, 0, axis.extent - 1).astype(np.int64))
    return bb.emit(relax.op.take(x, index, axis=axis.index, mode="clip"))


def _coordinates(axis: _Axis, kind: str) -> Array:
    """Return the source position of each result, in float32 as in onnxruntime."""
    one, half = np.float32(1), np.float32(0.5)
    at, scale = np.arange(axis.size, dtype=np.float32), axis.scale
    if kind == "asymmetric":
        return at / scale
    if kind == "align_corners":
        last = np.float32(max(axis.size - 1, 1))
        return at * np.float32(axis.extent - 1) / last
    if kind == "tf_half_pixel_for_nn":
        return (at + half) / scale
    if kind == "pytorch_half_pixel" and axis.size == 1:
        return at * 0
    middle = (at + half) / scale - half
    if kind == "half_pixel_symmetric":
        whole = np.float32(axis.size) / (scale * np.float32(axis.extent))
        return np.float32(axis.extent) * half * (one - whole) + middle
    if kind not in ("half_pixel", "pytorch_half_pixel"):
        raise UnsupportedError(f"coordinate_transformation_mode {kind} is not supported")
    return middle


def _nearest(at: Array, axis: _Axis, kind: str) -> Array:
    low = np.floor(at)
    if kind == "floor" or (kind == "simple" and axis.scale >= 1):
        return low
    if kind in ("ceil", "simple"):
        return np.ceil(at)
    up = at - low >= 0.5 if kind == "round_prefer_ceil" else at - low > 0.5
    return low + up


def _linear(at: Array, axis: _Axis) -> tuple[list[Array], list[Array]]:
    at = np.clip(at, 0, axis.extent - 1)
    low = np.floor(at)
    return [low, low + 1], [1 - (at - low), at - low]


def _cubic(at: Array, axis: _Axis, form: _Form) -> tuple[list[Array], list[Array]]:
    a, low = form.cubic, np.floor(at)
    s = at - low
    weights = [
        ((a * (s + 1) - 5 * a) * (s + 1) + 8 * a) * (s + 1) - 4 * a,
        ((a + 2) * s - (a + 3)) * s * s + 1,
        ((a + 2) * (1 - s) - (a + 3)) * (1 - s) * (1 - s) + 1,
        ((a * (2 - s) - 5 * a) * (2 - s) + 8 * a) * (2 - s) - 4 * a,
    ]
    places = [low + step for step in (-1, 0, 1, 2)]
    if form.inside:
        held = [w * ((p >= 0) & (p < axis.extent)) for w, p in zip(weights, places, strict=True)]
        weights = [w / sum(held) for w in held]
    return places, weights


RESIZES: Mapping[str, Any] = {"Resize": resize, "Upsample": upsample}
"""Converters by operator."""
