"""All code that depends on the version of TVM: moved names and changed calls.

Written against apache-tvm 0.27 (``tvm.tirx``, ``tvm.s_tir``, ``.ty`` instead of ``.struct_info``).
No other file names these directly.
"""

import platform
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

import numpy.typing as npt
import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.relax import vm_build
from tvm.relax.backend.cpu_generic import pipeline as cpu

from tvm_serenity import errors
from tvm_serenity.errors import SerenityError, UnsupportedError

for _error in vars(errors).values():
    if isinstance(_error, type) and issubclass(_error, SerenityError):
        tvm_ffi.error.register_error(_error)  # passes then raise these errors through TVM unchanged

ARENA_ALIGNMENT = 64
"""Alignment in bytes of TVM's own allocations, which kernels may assume."""


def lower_and_fuse(target: tvm.target.Target) -> Any:
    """Return TVM's own passes from a fresh module to fused ``call_tir`` in dataflow form."""
    return tvm.transform.Sequential(
        [
            legalized({"relax.topk"}),  # otherwise it becomes a call of TVM's runtime
            *cpu.library_dispatch_passes(target),
            *cpu.legalize_passes(target),
            relax.transform.DeadCodeElimination(),
        ]
    )


def legalized(names: set[str]) -> Any:
    """Return the pass that lowers the operators of these names, and no others, to kernels."""
    others = [str(name) for name in tvm.ir.Op.list_op_names() if str(name) not in names]
    return relax.transform.LegalizeOps(skip_ops=others)


def before_planning() -> Any:
    """Return the passes between ordering and memory planning."""
    return tvm.transform.Sequential(
        [relax.transform.ToNonDataflow(), relax.transform.RemovePurityChecking()]
    )


def after_planning(target: tvm.target.Target) -> Any:
    """Return the passes between memory planning and the virtual machine.

    They plan the tensors that our plan left out.
    """
    return tvm.transform.Sequential(
        [*cpu.dataflow_lower_passes(target), *cpu.finalize_passes(target)]
    )


def named_pass(name: str, apply: Callable[[Any], Any]) -> Any:
    """Return a module pass that runs ``apply`` under the name that TVM's instruments report."""
    return tvm.transform.module_pass(lambda mod, _context: apply(mod), opt_level=0, name=name)


def is_tensor(ty: relax.Type) -> bool:
    """Return whether ``ty`` is a tensor type."""
    return isinstance(ty, relax.TensorType)


def is_tuple(ty: relax.Type) -> bool:
    """Return whether ``ty`` is a tuple type."""
    return isinstance(ty, relax.TupleType)


def static_shape(ty: relax.Type, name: str) -> tuple[int, ...]:
    """Return the shape of a tensor type.

    Raises :class:`UnsupportedError` if an extent is not constant.
    """
    shape = constant_shape(ty)
    if shape is None:
        raise UnsupportedError(f"tensor {name!r} has a symbolic shape; fix its sizes first")
    return shape


def constant_shape(ty: relax.Type) -> tuple[int, ...] | None:
    """Return the shape of a tensor type; None for other types and extents that are not constant."""
    values = getattr(ty.shape, "values", None) if is_tensor(ty) else None
    if values is None or not all(isinstance(v, tvm.tirx.IntImm) for v in values):
        return None
    return tuple(int(v) for v in values)


def dtype_name(ty: relax.Type) -> str:
    """Return numpy's name of a tensor type's element type."""
    return str(ty.dtype.dtype)


def dtype_bits(dtype: str) -> int:
    """Return the size of one element in bits."""
    return 8 if dtype == "bool" else tvm.DataType(dtype).bits * tvm.DataType(dtype).lanes


def size_bytes(shape: Sequence[int], dtype: str) -> int:
    """Return the size of a compact tensor in bytes."""
    elements = 1
    for extent in shape:
        elements *= extent
    return (elements * dtype_bits(dtype) + 7) // 8


def is_constant(value: relax.Expr) -> bool:
    """Return whether an expression is a tensor literal."""
    return isinstance(value, tvm.ir.expr.GenericConst)


def op_name(call: relax.Expr) -> str:
    """Return the name of the operator or function that ``call`` calls."""
    return str(getattr(call.op, "name", None) or getattr(call.op, "name_hint", "") or call.op)


def is_choice(call: tirx.Expr) -> bool:
    """Return whether a call in a kernel evaluates one of two operands, as a condition says."""
    return op_name(call) == "prim.if_then_else"


def is_prim_func(function: tvm.ir.BaseFunc) -> bool:
    """Return whether a function of a module is a kernel."""
    return isinstance(function, tirx.PrimFunc)


def is_call(value: relax.Expr) -> bool:
    """Return whether an expression is a call."""
    return isinstance(value, tvm.ir.expr.Call)


def called_kernel(call: relax.Expr) -> Any:
    """Return the GlobalVar of the kernel that ``call_tir`` runs, None for any other call."""
    if op_name(call) in ("relax.call_tir", "relax.call_tir_inplace"):
        return call.args[0]
    return None


def called_external(call: relax.Expr) -> str | None:
    """Return the symbol of the external function that ``call`` passes its results to, or None."""
    if op_name(call) != "relax.call_dps_packed":
        return None
    return str(call.args[0].global_symbol)


def is_buffer_param(param: tirx.Var) -> bool:
    """Return whether a kernel's parameter is a tensor."""
    return bool(tirx.is_buffer_var(param))


def buffer_shape(buffer: tirx.Var) -> tuple[int, ...]:
    """Return the constant shape of a kernel's buffer."""
    return tuple(int(extent) for extent in buffer.ty.shape)


def buffer_dtype(buffer: tirx.Var) -> str:
    """Return numpy's name of a kernel buffer's element type."""
    return str(getattr(buffer.ty.dtype, "dtype", buffer.ty.dtype))


def offset_buffer(old: tirx.Var, alignment: int) -> Any:
    """Return a parameter like ``old`` that may start at any multiple of ``alignment`` bytes."""
    width = max(dtype_bits(buffer_dtype(old)) // 8, 1)
    return tirx.decl_buffer(
        old.ty.shape,
        old.ty.dtype,
        f"{old.name}_at",
        elem_offset=tirx.Var(f"{old.name}_offset", "int64"),
        offset_factor=max(alignment // width, 1),
    )


def plain_buffer(old: tirx.Var) -> Any:
    """Return ``old`` without its offset, at the address where it starts."""
    offset = old.ty.elem_offset
    if offset is None or (isinstance(offset, tirx.IntImm) and int(offset) == 0):
        return old
    return tirx.decl_buffer(old.ty.shape, old.ty.dtype, old.name)


def workspace_buffer(size: int, alignment: int) -> Any:
    """Return a parameter of ``size`` bytes of scratch at any multiple of ``alignment`` bytes."""
    return tirx.decl_buffer(
        (size,),
        "uint8",
        "workspace",
        elem_offset=tirx.Var("workspace_offset", "int64"),
        offset_factor=alignment,
    )


def declare_on(buffer: tirx.Var, base: tirx.Var, offset: int) -> Any:
    """Return the statement that places ``buffer`` in ``base`` at ``offset`` elements."""
    rank = len(base.ty.shape)
    index = [0] * (rank - 1) + [offset] if rank else []  # a 0-d tensor has one element
    return tirx.DeclBuffer(buffer, data=tirx.address_of(base[tuple(index)]))


_LOW_LEVEL = (
    "relax.call_tir",
    "relax.call_tir_inplace",
    "relax.call_dps_packed",
    "relax.call_pure_packed",
    "relax.reshape",
    "relax.memory.",
    "relax.builtin.",
    "relax.vm.",
)


def is_high_level(call: relax.Call) -> bool:
    """Return whether a call is an operator that is not yet lowered to a kernel."""
    name = op_name(call)
    return name.startswith("relax.") and not name.startswith(_LOW_LEVEL)


def with_body(function: relax.Function, body: relax.SeqExpr, *, is_pure: bool | None = None) -> Any:
    """Return a Relax function with its body replaced."""
    return relax.Function(
        function.params,
        body,
        function.ret_ty,
        function.is_pure if is_pure is None else is_pure,
        function.attrs,
    )


def alloc_storage(size: int) -> Any:
    """Return the expression that allocates ``size`` bytes at run time."""
    return relax.op.memory.alloc_storage(relax.ShapeExpr([size]), 0, "global", "uint8")


def alloc_in(storage: tirx.Var, offset: int, shape: Sequence[Any], dtype: str) -> Any:
    """Return the expression that places a tensor ``offset`` bytes into ``storage``."""
    return relax.op.memory.alloc_tensor(storage, offset, relax.ShapeExpr(list(shape)), dtype)


def alloc_fresh(shape: Sequence[Any], dtype: str) -> Any:
    """Return the expression that allocates a tensor with storage of its own."""
    return relax.op.builtin.alloc_tensor(relax.ShapeExpr(list(shape)), dtype, 0)


def kernel_arguments(call: relax.Call) -> list[Any]:
    """Return the arguments that ``call_tir`` passes to its kernel, without the results."""
    arguments = call.args[1]
    if len(call.args) > 2:
        raise UnsupportedError(f"kernel {call.args[0].name_hint!r}: symbolic sizes are unsupported")
    return list(arguments.fields) if isinstance(arguments, relax.Tuple) else [arguments]


def kernel_variable(name: str, kernel: tirx.PrimFunc) -> Any:
    """Return a GlobalVar for ``kernel``.

    It carries the kernel's type, against which TVM checks calls.
    """
    params = [
        relax.TensorType(list(p.ty.shape), buffer_dtype(p)) if is_buffer_param(p) else p.ty
        for p in kernel.params
    ]
    variable = tvm.ir.GlobalVar(name)
    relax.expr._update_type(variable, relax.FuncType(params, relax.TupleType([]), False))
    return variable


def has_blocks(kernel: tirx.PrimFunc) -> bool:
    """Return whether a kernel consists of blocks, which TIR schedules require."""
    return isinstance(kernel.body, tvm.s_tir.SBlockRealize)


def call_like(call: relax.Call, arguments: Sequence[Any]) -> Any:
    """Return ``call`` with other arguments of the same types."""
    return relax.Call(call.op, list(arguments), call.attrs, call.ty_args)


def call_with(call: relax.Call, arguments: Sequence[Any], **changed: Any) -> Any:
    """Return ``call`` with other arguments and some attributes changed."""
    kind = type(call.attrs).__tvm_ffi_type_info__
    held = {field.name: getattr(call.attrs, field.name) for field in kind.fields}
    attrs = tvm.ir.make_node(kind.type_key, **{**held, **changed})
    return relax.Call(call.op, list(arguments), attrs, call.ty_args)


def fuse_primitives() -> Any:
    """Return the passes that turn each function with the attribute Primitive into one kernel."""
    return tvm.transform.Sequential([relax.transform.LegalizeOps(), relax.transform.FuseTIR()])


def overwritten(call: relax.Expr) -> Any:
    """Return the argument that ``call_tir_inplace`` overwrites, None for any other expression."""
    if not is_call(call) or op_name(call) != "relax.call_tir_inplace":
        return None
    indices = [int(i) for i in call.attrs.inplace_indices]
    if len(indices) != 1 or indices[0] < 0 or is_tuple(call.ty):
        kernel = call.args[0].name_hint
        raise UnsupportedError(f"kernel {kernel!r}: an in-place kernel may have only one result")
    return kernel_arguments(call)[indices[0]]


def versions() -> str:
    """Return the versions of the packages that compile kernels."""
    return f"{tvm.__version__} {tvm.target.codegen.llvm_version_major()}"


def result_types(call: relax.Call) -> list[Any]:
    """Return the types of the results of a kernel call."""
    return list(call.ty.fields) if is_tuple(call.ty) else [call.ty]


def structural_key(function: relax.Function) -> Any:
    """Return a key that is equal for functions which compute the same."""
    return tvm_ffi.StructuralKey(function)


def structural_hash(function: tvm.ir.BaseFunc | tvm.IRModule) -> int:
    """Return a hash that is equal for functions which compute the same, constants included.

    It is the same in every process. (``save_json`` would contain everything, but it crashes if
    tvm-ffi is newer than the one that TVM was built with.)
    """
    return int(tvm_ffi.structural_hash(function))


def constant_array(value: tirx.Expr) -> Any:
    """Return the numpy array of a tensor literal."""
    return value.value.numpy()


def constant_address(value: tirx.Expr) -> int:
    """Return the address of a tensor literal's bytes, equal for literals that share them."""
    return int(value.value.data_ptr())


def constant(array: npt.NDArray[Any]) -> Any:
    """Return an array as a tensor literal."""
    return relax.const(array, str(array.dtype))


def call_kernel(
    builder: relax.BlockBuilder,
    kernel: tirx.PrimFunc,
    name: str,
    arguments: Sequence[Any],
    results: int = 1,
) -> Any:
    """Return the call of a new kernel whose last parameters are its results.

    Several results are a tuple.
    """
    made = kernel.params[len(kernel.params) - results :]
    types = [relax.TensorType(buffer_shape(out), buffer_dtype(out)) for out in made]
    ty = types[0] if results == 1 else types
    return relax.call_tir(builder.add_func(kernel, name), relax.Tuple(list(arguments)), ty)


def scalar(expr: relax.Expr) -> float | None:
    """Return the number that an operator's argument holds, None if it is not a scalar."""
    value = getattr(expr, "value", expr)
    return float(value) if isinstance(value, int | float) else None


def renamed(kernel: tirx.PrimFunc, name: str) -> Any:
    """Return a kernel with its symbol, if it has one, changed to ``name``."""
    symbol = (kernel.attrs or {}).get("global_symbol")
    return kernel if symbol is None else kernel.with_attr("global_symbol", name)


def anonymous(kernel: tirx.PrimFunc) -> Any:
    """Return a kernel without its symbol, so that kernels which compute the same are equal."""
    return kernel.without_attr("global_symbol") if kernel.attrs else kernel


def script(kernel: tirx.PrimFunc) -> str:
    """Return a kernel as text that ``from_script`` reads."""
    return str(kernel.script(show_meta=True))


def from_script(text: str) -> Any:
    """Return the kernel whose text ``script`` returned."""
    return tvm.script.from_source(text)


def by_pipeline(module: tvm.IRModule, target: tvm.target.Target, pipeline: Any) -> Any:
    """Return ``module`` after ``pipeline``, a pass or the name of one, for ``target``."""
    apply = relax.get_pipeline(pipeline) if isinstance(pipeline, str) else pipeline
    with target:
        return apply(module)


def storage_sizes(function: relax.Function) -> list[int | None]:
    """Return the bytes of each storage of a planned function; None if they are not constant."""
    sizes: list[int | None] = []

    def visit(found: Any) -> None:
        if is_call(found) and op_name(found) == "relax.vm.alloc_storage":
            (extent,) = found.args[0].values
            sizes.append(int(extent) if isinstance(extent, tirx.IntImm) else None)

    relax.analysis.post_order_visit(function.body, visit)
    return sizes


def bytecode_of(
    module: tvm.IRModule, target: tvm.target.Target, pipeline: Any
) -> tuple[relax.VMExecutable, dict[str, tirx.PrimFunc]]:
    """Return the virtual machine's instructions for a Relax module, and the kernels they call.

    ``pipeline``: a pass, the name of one, or None if the module has gone through it. The kernels
    are not yet compiled.
    """
    lowered = module if pipeline is None else by_pipeline(module, target, pipeline)
    if lowered.attrs and lowered.attrs.get("external_mods", None):
        raise UnsupportedError("the module calls external libraries: tvm.compile links those")
    builder = relax.ExecBuilder()
    left = vm_build._vmcodegen(builder, lowered)
    kernels = {v.name_hint: f for v, f in left.functions.items() if is_prim_func(f)}
    return builder.get(), kernels


def kernel_symbol(name: str) -> str:
    """Return the symbol of a compiled kernel's function in an object file."""
    return f"__tvm_ffi_{name}"


def write_object(
    kernel: tirx.PrimFunc, name: str, target: tvm.target.Target, path: str | PathLike[str]
) -> None:
    """Compile a kernel as ``name`` into an object file."""
    module = tvm.IRModule({name: kernel.with_attr("global_symbol", name)})
    tvm.tirx.build(module, target=target).write_to_file(str(path), "o")


def contracts(target: tvm.target.Target) -> bool:
    """Return whether LLVM may fuse a product and a sum into one operation with one rounding.

    Plain x86-64 has no such instruction.
    """
    attrs = dict(target.attrs) if target.attrs else {}
    plain = not any(attrs.get(key) for key in ("mcpu", "mattr", "mtriple"))
    return not (plain and platform.machine() in ("x86_64", "AMD64"))
