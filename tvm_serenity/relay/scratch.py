"""Scratch of kernels, measured by a first lowering."""

import tvm
from tvm import relay, tir
from tvm.relay.backend import te_compiler

from tvm_serenity.relay import lower
from tvm_serenity.relay.read import Scratch

ALIGNMENT = 16
"""Alignment in bytes of allocations in kernels."""


def scratch_of(target: tvm.target.Target) -> Scratch:
    """Return the function that lowers a call's kernel for ``target`` and counts its scratch.

    Equal kernels are lowered once. External functions count as 0.
    """
    known: dict[int, int] = {}

    def count(call: relay.Call) -> int:
        if not lower.is_kernel(call.op):
            return 0
        key = tvm.ir.structural_hash(call.op)
        if key not in known:
            lowered = te_compiler.get().lower(call.op, target)
            known[key] = sum(
                int(tir.analysis.calculate_workspace_bytes(kernel, ALIGNMENT))
                for kernel in lowered.funcs.functions.values()
            )
        return known[key]

    return count
