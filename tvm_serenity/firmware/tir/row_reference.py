"""What a row program must compute: every row of every layer, as the unsplit kernels make it."""

import numpy as np

from tvm_serenity.firmware.program import Array
from tvm_serenity.firmware.referee import as_reference, recorded
from tvm_serenity.firmware.rows.program import RowProgram
from tvm_serenity.firmware.rows.trace import reference_rows
from tvm_serenity.firmware.tir.reference import first_inputs, watched
from tvm_serenity.relax.rows_read import RowModule


def row_reference(
    rows: RowModule, program: RowProgram, seed: int = 0, model: str | None = None
) -> dict[str, Array]:
    """Return seeded inputs, ``step<i>`` for every row in the order written, and outputs.

    Whole tensors come from TVM's kernels on the Relax VM, states having their first values; rows
    are cut out of them. The outputs of the runtime of a ``model`` file are there as ``litert<i>``.
    """
    inputs = first_inputs(rows.lowered, program.program, seed)
    arrays, outputs = whole_tensors(rows, inputs)
    found = {f"input{i}": array for i, array in enumerate(inputs)}
    found |= reference_rows(program, arrays, inputs)
    found |= {f"output{i}": array for i, array in enumerate(outputs)}
    return {**found, **as_reference(recorded(model, inputs), outputs)}


def whole_tensors(rows: RowModule, inputs: list[Array]) -> tuple[dict[int, Array], list[Array]]:
    """Return the array of each feature that a kernel makes, and the outputs."""
    made_by, outputs = watched(rows.executable, rows.lowered, rows.region, inputs)
    by_tensor = {
        t: np.asarray(array)
        for op, arrays in made_by.items()
        for t, array in zip(rows.region.graph.ops[op].outputs, arrays, strict=True)
    }
    pairs = enumerate(rows.tensor_of)
    return {f: by_tensor[t] for f, t in pairs if t in by_tensor}, outputs
