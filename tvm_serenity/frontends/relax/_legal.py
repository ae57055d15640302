"""Check that TVM has a kernel for each operator of a module."""

import tvm
from tvm import relax

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends.model_file import REMEDY
from tvm_serenity.frontends.relax._importer import form_of, run_importer


def with_kernels(mod: tvm.IRModule) -> tvm.IRModule:
    """Return ``mod`` unchanged if TVM has a kernel for each of its operators.

    Raises :class:`UnsupportedError` with the name of an operator without a kernel.
    """
    try:
        run_importer(lambda: relax.transform.LegalizeOps()(mod))
    except UnsupportedError:
        for block in mod["main"].body.blocks:
            for binding in block.bindings:
                if not _has_kernel(binding):
                    raise UnsupportedError(_lacking(binding)) from None
        raise UnsupportedError(
            f"TVM can lower its operators individually, but not together; {REMEDY}"
        ) from None
    return mod


def _lacking(binding: relax.Binding) -> str:
    call = binding.value
    name = str(call.op.name).removeprefix("relax.")
    form = form_of(argument.ty for argument in call.args)
    return (
        f"operator {name} (value {binding.var.name!r}): TVM has no kernel for this form "
        f"({form}); {REMEDY}"
    )


def _has_kernel(binding: relax.Binding) -> bool:
    """Return whether a binding needs no kernel, or has one."""
    call = binding.value
    if not isinstance(call, tvm.ir.Call) or not hasattr(call.op, "name"):
        return True
    params = list(dict.fromkeys(relax.analysis.free_vars(call)))
    function = relax.Function(params, relax.SeqExpr([], call), call.ty, is_pure=True)
    try:
        alone = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
        run_importer(lambda: relax.transform.LegalizeOps()(relax.transform.Normalize()(alone)))
    except Exception:  # TVM raises any type
        return False
    return True
