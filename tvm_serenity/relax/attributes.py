"""Attributes of imported modules; firmware reads them where no importer is installed."""

from typing import Any

from tvm_serenity.quantize.choices import FLOAT

STATES = "serenity.states"
"""Attribute of ``main``: its last parameters and results are states, filled with these values."""


ROUNDING = "serenity.rounding"
"""Attribute of ``main``: how operators of the file that were read as integers round."""

OPERATORS = "serenity.operators"
"""Attribute of ``main`` of a ``.tflite`` file: what a message calls each variable's operator."""

DYNAMIC_RANGE = "serenity.dynamic_range"
"""Attribute of ``main`` of a file with float operators of 8-bit weights: how these were read."""

INPUTS, OUTPUTS = "serenity.inputs", "serenity.outputs"
"""Attributes of ``main``: what the file calls its inputs and outputs, states excepted."""

INPUT_SCALES, OUTPUT_SCALES = "serenity.input_scales", "serenity.output_scales"
"""Attributes of ``main``: for each of them its scale and zero point, nothing where it has none."""


def first_values(function: Any) -> list[int]:
    """Return the value that fills each state of ``main`` before the first run."""
    attrs = function.attrs or {}
    return [int(value) for value in attrs[STATES]] if STATES in attrs else []


def rounds_less(function: Any) -> bool:
    """Whether activations of ``main`` stay float that the file's runtime stores as 8 bits."""
    attrs = function.attrs or {}
    return DYNAMIC_RANGE in attrs and str(attrs[DYNAMIC_RANGE]) == FLOAT
