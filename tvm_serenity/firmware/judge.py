"""The model's own runtime on the inputs of a reference: in a process of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tvm_serenity.errors import MissingPartError
from tvm_serenity.firmware.program import Array
from tvm_serenity.frontends._flatbuffer import root_table
from tvm_serenity.frontends._tflite_schema import (
    ModelField,
    OperatorField,
    SubgraphField,
    TensorField,
)
from tvm_serenity.referees import Referee, RefereeError, runtime_for

SUFFIXES = (".tflite", ".onnx", ".pt2")
"""Models that have a runtime of their own."""
RELATIVE = 1e-4
"""How far floats of an output may be off, as a share of its largest number."""
DYNAMIC = 0.05
"""The same where LiteRT rounds activations to 8 bits: float networks of 8-bit weights."""
_FLOAT32, _INT8, _UINT8 = 0, 9, 3


@dataclass(frozen=True)
class Verdict:
    """What ``runtime`` computed; no ``outputs`` where it did not, for a ``reason``."""

    runtime: str
    outputs: tuple[Array, ...] = ()
    reason: str = ""
    relative: float = RELATIVE


def judged(model: str, inputs: Sequence[Array], like: Sequence[Array], stateful: bool) -> Verdict:
    """Return the outputs of a model's own runtime for ``inputs``, shaped as those in ``like``.

    Networks with states are left to ``verify``'s own reference: runtimes differ in their first
    values.
    """
    path = Path(model)
    if path.suffix.lower() not in SUFFIXES or not path.is_file():
        return Verdict("", reason="no runtime of its own")
    data = path.read_bytes()
    runtime = runtime_for(path, data)
    relative = DYNAMIC if runtime == "litert" and _rounds_activations(data) else RELATIVE
    if stateful:
        return Verdict(runtime, reason="it keeps states between runs")
    try:
        with Referee() as judge:
            judge.open(runtime, path)
            pairs = zip(judge.entries, inputs, strict=True)
            found = judge.run([_shaped(np.asarray(a), e.shape) for e, a in pairs]).outputs
    except (RefereeError, MissingPartError, ValueError) as error:
        return Verdict(runtime, reason=" ".join(str(error).split())[:200])
    if [a.size for a in found] != [np.asarray(b).size for b in like]:
        return Verdict(runtime, reason="its outputs have other shapes")
    made = zip(found, like, strict=True)
    outputs = tuple(np.asarray(a).reshape(np.shape(b)) for a, b in made)
    return Verdict(runtime, outputs, relative=relative)


def _shaped(array: Array, shape: Sequence[int]) -> Array:
    """``array`` in the runtime's shape; as it is where that has extents that are not fixed."""
    return array if any(extent < 0 for extent in shape) else array.reshape(shape)


def _rounds_activations(data: bytes) -> bool:
    """Whether an operator takes float activations and 8-bit weights."""
    main = root_table(data, b"TFL3").tables(ModelField.SUBGRAPHS)[0]
    types = [t.u8(TensorField.TYPE) for t in main.tables(SubgraphField.TENSORS)]
    for op in main.tables(SubgraphField.OPERATORS):
        read = [types[i] for i in op.ints(OperatorField.INPUTS)[:2] if i >= 0]
        if len(read) == 2 and read[0] == _FLOAT32 and read[1] in (_INT8, _UINT8):
            return True
    return False


def apart(
    got: Sequence[Array], want: Sequence[Array], relative: float = RELATIVE
) -> tuple[int, float] | None:
    """Return the first output that is wrong and by how much at most; None if all are accepted.

    Integers must be identical, floats within ``relative`` of the output's largest number.
    """
    for index, (a, b) in enumerate(zip(got, want, strict=True)):
        wide = np.asarray(b).astype(np.float64)
        off = np.abs(np.asarray(a).astype(np.float64) - wide)
        same = (np.asarray(a) == b) | (np.isnan(wide) & np.isnan(np.asarray(a, np.float64)))
        most = float(np.nan_to_num(np.where(same, 0.0, off), nan=np.inf).max(initial=0.0))
        finite = np.abs(wide[np.isfinite(wide)]).max(initial=0.0)
        limit = relative * float(finite) if np.asarray(b).dtype.kind == "f" else 0.0
        if most > limit:
            return index, most
    return None
