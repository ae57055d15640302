"""Lower TIR kernels to loops over flat buffers, as before TVM's calling convention."""

from collections.abc import Mapping
from typing import Any

import tvm
from tvm import s_tir, tirx

from tvm_serenity.kernels.loops import without_blocks
from tvm_serenity.kernels.safe_indices import safe_indices
from tvm_serenity.kernels.workspace import without_offsets


def flattened(
    kernels: Mapping[str, Any], target: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return each kernel as loops, conditions and stores into one-dimensional buffers."""
    machine = tvm.target.Target({"kind": "c"} if target is None else dict(target))
    safe = {n: safe_indices(without_offsets(kernel), machine) for n, kernel in kernels.items()}
    module = tvm.IRModule({n: kernel.with_attr("global_symbol", n) for n, kernel in safe.items()})
    module = tirx.transform.BindTarget(machine.with_host(machine))(module)
    module = tvm.transform.Sequential(_passes())(module)
    return {g.name_hint: f for g, f in module.functions.items()}


def _passes() -> list[Any]:
    t, x = s_tir.transform, tirx.transform
    return [
        *without_blocks(),
        x.FlattenBuffer(),
        x.NarrowDataType(32),
        t.LoopPartition(),
        x.VectorizeLoop(False),
        x.StorageRewrite(),
        t.HoistIfThenElse(),
        x.UnrollLoop(),
        t.RenormalizeSplitPattern(),
        x.StmtSimplify(),
        x.RemoveNoOp(),
        t.RewriteUnsafeSelect(),
        x.CommonSubexprElim(),
        x.VerifyMemory(),
        x.LowerIntrin(),
    ]
