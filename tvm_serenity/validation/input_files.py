"""Inputs from the user's ``.npz`` or ``.npy`` files, checked against the network."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tvm

from tvm_serenity.errors import InputError
from tvm_serenity.validation.inputs import Array, Range
from tvm_serenity.validation.network_inputs import states_of
from tvm_serenity.validation.ranges import input_ranges, parameters_of


def given_inputs(files: Sequence[str], module: tvm.IRModule) -> list[Array]:
    """Return one array per parameter of ``main``: states have initial values, the rest are read.

    One ``.npz`` holds all inputs, by name or in order; otherwise each ``.npy`` file holds one
    input, in order. Raises :class:`InputError` for a missing input, a wrong shape or type, or an
    index out of range.
    """
    parameters, states = parameters_of(module["main"]), states_of(module)
    wanted = parameters[: len(parameters) - len(states)]
    names = [name for name, _, _ in wanted]
    arrays = _read(files, names)
    if len(arrays) != len(wanted):
        raise InputError(
            f"--input: the files hold {len(arrays)} arrays, but the network has {_listed(wanted)}"
        )
    ranges = input_ranges(module) if any("int" in dtype for _, _, dtype in wanted) else {}
    found = [
        _checked(array, *parameter, ranges.get(position))
        for position, (array, parameter) in enumerate(zip(arrays, wanted, strict=True))
    ]
    first = [
        np.full(shape, value, dtype)
        for (_, shape, dtype), value in zip(parameters[len(wanted) :], states, strict=True)
    ]
    return [*found, *first]


def _listed(wanted: Sequence[tuple[str, tuple[int, ...], str]]) -> str:
    described = ", ".join(f"{name} {dtype}{list(shape)}" for name, shape, dtype in wanted)
    return f"{len(wanted)} inputs: {described}"


def _read(files: Sequence[str], names: Sequence[str]) -> list[Array]:
    if len(files) == 1 and Path(files[0]).suffix == ".npz":
        held = _loaded(files[0])
        if set(held) == set(names):
            return [held[name] for name in names]
        numbered = all(k.removeprefix("arr_").removeprefix("input").isdigit() for k in held)
        if numbered or len(held) != len(names):
            return list(held.values())
        raise InputError(
            f"{files[0]}: the file holds arrays {', '.join(held)}, "
            f"but the inputs are {', '.join(names)}"
        )
    found: list[Array] = []
    for file in files:
        held = _loaded(file)
        if len(held) != 1:
            raise InputError(
                f"{file}: the file holds {len(held)} arrays, but one file per input was given; "
                "give a single .npz with all inputs, or one .npy with one array per input"
            )
        found += held.values()
    return found


def _loaded(file: str) -> dict[str, Array]:
    try:
        found = np.load(file, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return {"0": found}
        with found:
            return {name: found[name] for name in found.files}
    except (OSError, ValueError, EOFError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{file}: the input file cannot be read: {reason}") from None


def _checked(
    array: Array, name: str, shape: tuple[int, ...], dtype: str, allowed: Range | None
) -> Array:
    if str(array.dtype) != dtype:
        raise InputError(
            f"--input {name}: the array has type {array.dtype}, the network takes {dtype}"
        )
    if array.shape != shape:
        raise InputError(
            f"--input {name}: the array has shape {array.shape}, the network takes {shape}"
        )
    if allowed is not None and array.size:
        low, high = array.min(), array.max()
        if not (allowed.low <= low and high <= allowed.high):
            raise InputError(
                f"--input {name}: values from {low} to {high} are used as indices, "
                f"which must lie from {allowed.low} to {allowed.high}"
            )
    return array
