"""The tensors of a TFLite subgraph: sizes, types and roles."""

from collections.abc import Sequence, Set

from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.frontends._flatbuffer import Table
from tvm_serenity.frontends._tflite_schema import TENSOR_TYPES, SubgraphField, TensorField
from tvm_serenity.frontends.model_file import size_bytes, unique
from tvm_serenity.graph import Role, Tensor

_QUANTIZATION_VECTORS = ((0, 4), (1, 4), (2, 4), (3, 8))


def read_tensors(
    subgraph: Table, buffers: Sequence[int], made: Set[int], used: Set[int]
) -> list[Tensor]:
    """Return the tensors of ``subgraph``, with unique names.

    ``buffers``: the sizes of the file's buffers. ``made``: the tensors that an operator or the
    caller provides. ``used``: the tensors that matter; others may have unknown sizes.
    """
    tables = subgraph.tables(SubgraphField.TENSORS)
    names = unique(
        table.string(TensorField.NAME) or f"tensor_{index}" for index, table in enumerate(tables)
    )
    return [
        _tensor(table, name, buffers, index in made, index in used)
        for index, (table, name) in enumerate(zip(tables, names, strict=True))
    ]


def _tensor(table: Table, name: str, buffers: Sequence[int], made: bool, used: bool) -> Tensor:
    code = table.u8(TensorField.TYPE)
    if code >= len(TENSOR_TYPES):
        raise UnsupportedError(f"tensor {name!r}: unknown element type {code}")
    dtype, bits = TENSOR_TYPES[code]
    shape = table.ints(TensorField.SHAPE)
    stored = _stored_bytes(table, name, buffers)
    if stored and not made:
        expected = size_bytes(name, shape, bits)
        if bits and stored != expected and table.table(TensorField.SPARSITY) is None:
            raise InputError(
                f"tensor {name!r}: stores {stored} bytes, but its shape {list(shape)} of "
                f"{dtype} takes {expected}"
            )
        return Tensor(name, stored, shape, dtype, Role.CONSTANT)
    if table.u8(TensorField.IS_VARIABLE):
        return Tensor(name, size_bytes(name, shape, bits), shape, dtype, Role.STATE)
    if dtype in ("resource", "variant"):
        return Tensor(name, 0, shape, dtype, Role.STATE)
    if not used:
        return Tensor(name, 0, None, dtype)
    if not bits:
        raise UnsupportedError(
            f"tensor {name!r}: {dtype} tensors have no fixed size; compute them outside of "
            "the network"
        )
    _check_static(table, name, shape)
    size = size_bytes(name, shape, bits)
    role = Role.ACTIVATION if made or size else Role.CONSTANT
    return Tensor(name, size, shape, dtype, role)


def _stored_bytes(table: Table, name: str, buffers: Sequence[int]) -> int:
    """Return the bytes that the file stores for a tensor; check its quantisation's position."""
    quantization = table.table(TensorField.QUANTIZATION)
    if quantization is not None:
        for number, width in _QUANTIZATION_VECTORS:
            quantization.span(number, width)
    if table.u32(TensorField.EXTERNAL_BUFFER):
        raise UnsupportedError(
            f"tensor {name!r}: its data is in another file; store the model in one file"
        )
    buffer = table.u32(TensorField.BUFFER)
    if buffer == 0:  # "no data" by the schema
        return 0
    if buffer >= len(buffers):
        raise InputError(
            f"tensor {name!r}: buffer {buffer} does not exist, the file has {len(buffers)}"
        )
    return buffers[buffer]


def _check_static(table: Table, name: str, shape: tuple[int, ...]) -> None:
    """Refuse shapes that are known only at run time; for the batch the stored size is used."""
    signature = table.ints(TensorField.SHAPE_SIGNATURE)
    if any(dim < 0 for dim in signature[1:]):
        raise UnsupportedError(
            f"tensor {name!r}: unknown dimension in shape {list(signature)}; convert the model "
            "with a fixed input shape"
        )
    if any(dim < 0 for dim in shape):
        raise UnsupportedError(
            f"tensor {name!r}: unknown dimension in shape {list(shape)}; convert the model "
            "with a fixed input shape"
        )
