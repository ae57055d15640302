"""Operators: one file a kind, with all that is known of it.

    operator("CONV_2D").rows.needs     # which rows of the input a row of the result needs

A file declares ``OPERATORS``: records of one operator, or of a family that is one thing with a
parameter. One line in ``MODULES`` registers it; everything else looks the record up here, so there
is no second table of kinds. ONNX's operators that share facts with TFLite's stand beside them.

A file imports no TVM, not even inside its functions: a ``.tflite`` file is scheduled, cut into rows
and rewritten where none is installed. What makes a kernel (``compute``) imports the modules of
``tvm_serenity.kernels`` inside its function, which is called when the kernel is made.
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
"""The files of this package, one an operator."""

OPERATORS: dict[str, Operator] = {
    kind: record
    for name in MODULES
    for record in import_module(f"tvm_serenity.operators.{name}").OPERATORS
    for kind in record.kinds
}
"""Every operator by its kinds."""


RELAX = {f"relax.{name}": record for record in OPERATORS.values() for name in record.relax}
RELAY = {name: record for record in OPERATORS.values() for name in record.relay}
"""The operators whose facts hold for TVM's own, by the names of these."""


@cache
def operator(kind: str) -> Operator:
    """Return what is known of a kind; of one that is not here, nothing."""
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
