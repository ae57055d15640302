"""SlicesOfSplits: parts of a split, which are tuple items, become slices of its input."""

from collections.abc import Mapping
from typing import Any

import tvm
from tvm import relax
from tvm.relax.dpl import DFPattern, is_op, is_tuple_get_item, rewrite_call, wildcard

from tvm_serenity import compat


@relax.transform.function_pass(opt_level=0, name="SlicesOfSplits")
class SlicesOfSplits:
    """Replaces ``split(x)[i]`` by a slice of ``x``, which is bit-identical and known to the rules.

    A split stays if anything but its single parts is used.
    """

    def transform_function(
        self, function: relax.Function, _mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> Any:
        """Return the function with slices in place of parts of splits."""
        whole = wildcard()
        split = is_op("relax.split")(whole)

        def as_slice(item: relax.Expr, found: Mapping[DFPattern, relax.Expr]) -> Any:
            axis, parts = int(found[split].attrs.axis), found[split].ty.fields
            extents = [compat.static_shape(part, "part of a split")[axis] for part in parts]
            begin = sum(extents[: item.index])
            end = begin + extents[item.index]
            return relax.op.strided_slice(found[whole], [axis], [begin], [end])

        return rewrite_call(is_tuple_get_item(split), as_slice, function)
