"""SlicesOfSplits: the parts of a split, which are items of a tuple, as slices of what is split."""

from collections.abc import Mapping
from typing import Any

import tvm
from tvm import relax
from tvm.relax.dpl import DFPattern, is_op, is_tuple_get_item, rewrite_call, wildcard

from tvm_serenity import compat


@relax.transform.function_pass(opt_level=0, name="SlicesOfSplits")
class SlicesOfSplits:
    """Replace ``split(x)[i]`` by a slice of ``x``: bit-identical, and rules know slices.

    A split of which something else than single parts is used stays.
    """

    def transform_function(
        self, function: relax.Function, _mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> Any:
        """Return the function without parts of splits."""
        whole = wildcard()
        split = is_op("relax.split")(whole)

        def as_slice(item: relax.Expr, found: Mapping[DFPattern, relax.Expr]) -> Any:
            axis, parts = int(found[split].attrs.axis), found[split].ty.fields
            extents = [compat.static_shape(part, "part of a split")[axis] for part in parts]
            begin = sum(extents[: item.index])
            end = begin + extents[item.index]
            return relax.op.strided_slice(found[whole], [axis], [begin], [end])

        return rewrite_call(is_tuple_get_item(split), as_slice, function)
