"""Attributes of imported modules, in a module of their own: firmware needs no importer."""

from collections.abc import Iterator
from typing import Any

from tvm_serenity.quantize.choices import FLOAT

STATES = "serenity.states"
"""Attribute of ``main``: initial values of the states, its last parameters and results."""


ROUNDING = "serenity.rounding"
"""Attribute of ``main``: the rounding of operators that were imported as integers."""

OPERATORS = "serenity.operators"
"""Attribute of ``main`` of a ``.tflite`` file: the display name of each variable's operator."""

DYNAMIC_RANGE = "serenity.dynamic_range"
"""Attribute of ``main``: the arithmetic of float operators with 8-bit weights."""

INPUTS, OUTPUTS = "serenity.inputs", "serenity.outputs"
"""Attributes of ``main``: the file's names of inputs and outputs, without states."""

INPUT_SCALES, OUTPUT_SCALES = "serenity.input_scales", "serenity.output_scales"
"""Attributes of ``main``: scale and zero point of each input and output, empty if it has none."""

LABELS = "serenity.labels"
"""Attribute of ``main``: the labels of the elements of each output, empty if it has none."""


def first_values(function: Any) -> list[int]:
    """Return the initial value of each state of ``main``."""
    attrs = function.attrs or {}
    return [int(value) for value in attrs[STATES]] if STATES in attrs else []


def labels_of(function: Any) -> Iterator[tuple[str, ...]]:
    """Yield the labels of each output of ``main``, as far as they are known."""
    attrs = function.attrs or {}
    yield from (tuple(map(str, labels)) for labels in attrs.get(LABELS, ()))


def rounds_less(function: Any) -> bool:
    """Return whether ``main`` has float activations that the file's runtime stores in 8 bits."""
    attrs = function.attrs or {}
    return DYNAMIC_RANGE in attrs and str(attrs[DYNAMIC_RANGE]) == FLOAT
