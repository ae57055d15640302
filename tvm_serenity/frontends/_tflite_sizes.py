"""User-supplied sizes of unknown input extents in a ``.tflite`` file."""

from collections.abc import Mapping, Sequence

from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.frontends._flatbuffer import Table
from tvm_serenity.frontends._tflite_schema import TensorField
from tvm_serenity.frontends.model_file import asking, checked_size, named_axis, printable

Shape = tuple[int, ...]


def given_shapes(
    tensors: Sequence[Table], inputs: Sequence[int], dims: Mapping[str, int]
) -> dict[int, Shape]:
    """Return the shapes of inputs with the sizes in ``dims``, by tensor.

    Raises :class:`InputError`, which lists the unknown extents, if ``dims`` names any other.
    """
    names = {t: printable(tensors[t].string(TensorField.NAME)) for t in inputs}
    found: dict[int, list[int]] = {}
    for name, size in dims.items():
        checked_size(name, size)
        tensor, axis = _open_extent(tensors, names, name)
        stored = tensors[tensor].ints(TensorField.SHAPE)
        found.setdefault(tensor, list(stored))[axis] = size
    return {tensor: tuple(shape) for tensor, shape in found.items()}


def check_sized(tensors: Sequence[Table], inputs: Sequence[int]) -> None:
    """Refuse unknown extents of inputs, naming the option; an unknown batch is the stored one."""
    for tensor in inputs:
        table = tensors[tensor]
        stored, said = (table.ints(f) for f in (TensorField.SHAPE, TensorField.SHAPE_SIGNATURE))
        name = printable(table.string(TensorField.NAME))
        unknown = [
            axis
            for axis, size in enumerate(stored)
            if size < 0 or (axis > 0 and said[axis : axis + 1] == (-1,))
        ]
        if unknown:
            raise UnsupportedError(
                f"tensor {name!r}: unknown dimension in shape {list(said or stored)}; set "
                f"{asking(named_axis(name, axis) for axis in unknown)}"
            )


def _open_extent(tensors: Sequence[Table], names: Mapping[int, str], asked: str) -> tuple[int, int]:
    known = {
        named_axis(name, axis): (tensor, axis)
        for tensor, name in names.items()
        for axis in _open(tensors[tensor])
    }
    if asked not in known:
        there = ", ".join(known) or "none"
        raise InputError(
            f"no unknown dimension is named {asked!r} (INPUT:AXIS); the unknown "
            f"dimensions of the model's inputs are: {there}"
        )
    return known[asked]


def _open(table: Table) -> list[int]:
    """Return the axes whose extents are unknown in the file."""
    fields = (TensorField.SHAPE_SIGNATURE, TensorField.SHAPE)
    return sorted({axis for f in fields for axis, size in enumerate(table.ints(f)) if size < 0})
