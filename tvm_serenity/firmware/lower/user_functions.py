"""Kernels that call a C function of the user, for operators that the user computes."""

from tvm import tirx

from tvm_serenity import compat
from tvm_serenity.firmware.emit.opaque import function_of
from tvm_serenity.firmware.program import Kernel, Param
from tvm_serenity.kernels.opaque import Opaque, Passed


def calling(name: str, function: tirx.PrimFunc, what: Opaque, alignment: int) -> tuple[Kernel, int]:
    """Return a kernel that calls the user's function, and the bytes of its workspace."""
    dtypes = [compat.buffer_dtype(p) for p in function.params]
    first = len(dtypes) - len(what.outputs)
    params = [Param(f"p{i}", dtype, i < first) for i, dtype in enumerate(dtypes)]
    start = -(-what.scratch_bytes // alignment) * alignment
    needed = start + what.workspace_bytes
    if needed:
        params.append(Param("workspace", "uint8", False))
    made = [f"p{first + i}" for i in range(len(what.outputs))]
    options = ("NULL", 0) if what.options is None else (f"p{what.options[0]}", what.options[1])
    workspace = f"workspace + {start}" if what.workspace_bytes else "NULL"
    inputs = [_given(given) for given in what.inputs]
    sizes = [f"{given.size_bytes}u" for given in what.inputs]
    body = f"""\
    const void *const inputs[] = {{{", ".join(inputs) or "NULL"}}};
    const uint32_t input_bytes[] = {{{", ".join(sizes) or "0u"}}};
    void *const outputs[] = {{{", ".join(made)}}};
    const uint32_t output_bytes[] = {{{", ".join(f"{n}u" for n in what.outputs)}}};
    const serenity_opaque call = {{
        inputs, input_bytes, {len(inputs)}u, outputs, output_bytes, {len(made)}u,
        {workspace}, {what.workspace_bytes}u, {options[0]}, {options[1]}u,
    }};
    {function_of(what.name)}(&call);
"""
    return Kernel(name, tuple(params), body, restrict=False, user=what.name), needed


def _given(given: Passed) -> str:
    if given.parameter is not None:
        return f"p{given.parameter}"
    return "NULL" if given.scratch_offset is None else f"workspace + {given.scratch_offset}"
