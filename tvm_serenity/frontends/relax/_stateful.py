"""Set initial values of variables, and give each result its own tensor."""

from typing import Any

import numpy as np
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.frontends.relax._variables import Variables
from tvm_serenity.kernels.copied import copied
from tvm_serenity.relax.calls import Writer, shape_of

STARTED = "<started>"
"""The state that records whether the model has run before."""


def begin(converter: Any, variables: Variables) -> None:
    """Emit constant variables, and select initial values that are not uniform in the first run."""
    table = converter.exp_tab
    for variable in variables.constants:
        table.set_expr(variable.tensor.name, compat.constant(variable.first))
    if not variables.selected:
        return
    flag, one = table.get_expr(STARTED), compat.constant(np.ones(1, np.int8))
    for variable in variables.selected:
        name, shape = variable.tensor.name, variable.tensor.shape or ()
        later = relax.op.reshape(relax.op.equal(flag, one), [1] * len(shape))
        first, held = compat.constant(variable.first), table.get_expr(name)
        chosen = converter.bb.emit(relax.op.where(later, held, first))
        table.set_expr(name, chosen, force_override=True)
    now = converter.bb.emit(relax.op.maximum(flag, one))
    table.set_expr(STARTED, now, force_override=True)


def part_results(converter: Any) -> None:
    """Copy results that are inputs, constants, or equal to another result."""
    writer, seen = Writer(converter.bb), list[Any]()
    for wrapper in converter.get_tensors(converter.subgraph.OutputsAsNumpy()):
        made = converter.bb.normalize(converter.get_tensor_expr(wrapper))
        source = writer.source(made)
        shared = any(source.same_as(other) for other in seen)
        if shared or not writer.is_computed(source):
            kernel = copied(shape_of(made), compat.dtype_name(made.ty))
            made = writer.kernel("copied", kernel, made)
            name = wrapper.tensor.Name().decode()
            converter.exp_tab.set_expr(name, made, force_override=True)
        seen.append(source)
