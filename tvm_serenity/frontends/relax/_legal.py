"""Whether TVM has a kernel for every operator of a module, asked before anything is built on it."""

import tvm
from tvm import relax

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends.relax._importer import first_line, run_importer


def with_kernels(mod: tvm.IRModule) -> tvm.IRModule:
    """Return ``mod`` as it is; :class:`UnsupportedError` names an operator without a kernel."""
    try:
        run_importer(lambda: relax.transform.LegalizeOps()(mod))
    except UnsupportedError as error:
        for block in mod["main"].body.blocks:
            for binding in block.bindings:
                reason = _reason(binding)
                if reason:
                    name = str(binding.value.op.name).removeprefix("relax.")
                    said = f"operator {name} (value {binding.var.name!r}): no kernel: {reason}"
                    raise UnsupportedError(said) from None
        raise UnsupportedError(f"no kernels for it: {error}") from None
    return mod


def _reason(binding: relax.Binding) -> str:
    """Why one operator has no kernel, or nothing."""
    call = binding.value
    if not isinstance(call, tvm.ir.Call) or not hasattr(call.op, "name"):
        return ""
    params = list(dict.fromkeys(relax.analysis.free_vars(call)))
    function = relax.Function(params, relax.SeqExpr([], call), call.ty, is_pure=True)
    try:
        alone = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
        run_importer(lambda: relax.transform.LegalizeOps()(relax.transform.Normalize()(alone)))
    except UnsupportedError as error:
        return str(error).removeprefix("TVM cannot import it: ")
    except Exception as error:
        return first_line(error)
    return ""
