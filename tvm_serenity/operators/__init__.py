"""One file per operator kind, with everything that the project knows of the operator.

``operator("CONV_2D").rows.needs`` maps rows of a result to the input rows they need.

A file declares ``OPERATORS``: records of one operator, or of a family with a parameter. One line in
``MODULES`` registers the file. All other code looks records up here, so that no second table of
kinds exists. ONNX operators with the same properties as a TFLite operator are in the same file.

No file imports TVM, not even inside a function: ``.tflite`` files can be scheduled, split into rows
and rewritten without TVM. ``compute``, which emits kernels, imports ``tvm_serenity.kernels`` when
it is called.
"""

from functools import cache
from importlib import import_module

from tvm_serenity.operators.needs import Seen
from tvm_serenity.operators.parts import MemoryUse, Sums, WeightInput
from tvm_serenity.operators.record import Operator

MODULES = (
    "abs",
    "add",
    "add_n",
    "arg_max",
    "average_pool_2d",
    "batch_matmul",
    "circular_buffer",
    "comparison",
    "complex_numbers",
    "concatenation",
    "conv_2d",
    "cumsum",
    "depthwise_conv_2d",
    "detection_postprocess",
    "div",
    "dynamic_update_slice",
    "elu",
    "embedding_lookup",
    "exp",
    "fake_quant",
    "float_functions",
    "floor_div",
    "fully_connected",
    "gather",
    "gelu",
    "hard_swish",
    "l2_normalization",
    "l2_pool_2d",
    "leaky_relu",
    "local_response_normalization",
    "log",
    "log_softmax",
    "logistic",
    "max_pool_2d",
    "maximum",
    "mean",
    "mirror_pad",
    "moves",
    "mul",
    "neg",
    "one_hot",
    "pad",
    "prelu",
    "quantize",
    "range",
    "rank",
    "recurrent",
    "reduce_max",
    "reduce_prod",
    "relu",
    "reshape",
    "resize_bilinear",
    "resize_nearest_neighbor",
    "rsqrt",
    "scatter_nd",
    "select",
    "signal_delay",
    "signal_energy",
    "signal_fft_auto_scale",
    "signal_filter_bank",
    "signal_filter_bank_log",
    "signal_filter_bank_spectral_subtraction",
    "signal_filter_bank_square_root",
    "signal_framer",
    "signal_overlap_add",
    "signal_pcan",
    "signal_rfft",
    "signal_stacker",
    "signal_window",
    "slices",
    "softmax",
    "space_to_batch_nd",
    "split",
    "sqrt",
    "squared_difference",
    "subgraphs",
    "svdf",
    "transpose_conv",
    "unidirectional_sequence_lstm",
    "variables",
)
"""The files of this package, one per operator."""

OPERATORS: dict[str, Operator] = {
    kind: record
    for name in MODULES
    for record in import_module(f"tvm_serenity.operators.{name}").OPERATORS
    for kind in record.kinds
}
"""The record of each operator kind."""


RELAX = {f"relax.{name}": record for record in OPERATORS.values() for name in record.relax}
RELAY = {name: record for record in OPERATORS.values() for name in record.relay}
"""The records that also hold for Relay's operators, by Relay name."""


@cache
def operator(kind: str) -> Operator:
    """Return the record of ``kind``, or an empty record if the kind is unknown."""
    return OPERATORS.get(kind) or Operator(kinds=(kind,))


__all__ = [
    "MODULES",
    "OPERATORS",
    "RELAX",
    "RELAY",
    "MemoryUse",
    "Operator",
    "Seen",
    "Sums",
    "WeightInput",
    "operator",
]
