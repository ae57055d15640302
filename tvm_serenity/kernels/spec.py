"""The record of a kernel, attached as JSON in an attribute (``spec_read`` reads it).

Multipliers that are arguments of the kernel (one per channel) are omitted, so that layers that
differ only in them share a kernel; they are read from the call's arguments.
"""

import json
from dataclasses import fields, is_dataclass, replace
from typing import Any

from tvm import tirx

SPEC = "serenity.spec"
"""Attribute of a PrimFunc: its record as JSON."""
KIND = "kind"
"""The JSON key of a record's class name."""


def described(kernel: tirx.PrimFunc, spec: Any) -> Any:
    """Return ``kernel`` with ``spec``, a frozen dataclass, in its attribute ``SPEC``."""
    finish = getattr(spec, "requantise", None)
    if finish is not None and finish.per_channel:
        spec = replace(spec, requantise=replace(finish, multiplier=None))
    return kernel.with_attr(SPEC, json.dumps(encoded(spec)))


def encoded(value: Any) -> Any:
    """Return a record, or a part of one, as JSON stores it."""
    if is_dataclass(value) and not isinstance(value, type):
        found = {f.name: encoded(getattr(value, f.name)) for f in fields(value)}
        return {KIND: type(value).__name__, **found}
    return [encoded(part) for part in value] if isinstance(value, tuple) else value
