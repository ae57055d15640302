"""TIR kernels compiled by LLVM for a board: plain C functions in an object file."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tvm
from tvm import ir, tirx

from tvm_serenity import compat
from tvm_serenity.boards import Board
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.c_names import identifier, unique
from tvm_serenity.firmware.lower.flatten import flattened
from tvm_serenity.firmware.lower.statements import STACK_LIMIT_BYTES, Written, buffer_bytes
from tvm_serenity.firmware.program import Kernel, Param
from tvm_serenity.kernels.nodes import mapped, parts
from tvm_serenity.plan import Buffer, plan

OBJECT = "kernels_llvm.o"
"""The file that holds the compiled kernels."""


@dataclass(frozen=True)
class CompiledKernels:
    """The kernels that a program calls, and their object file."""

    kernels: dict[str, Written]
    object: bytes


def llvm_target(board: Board) -> dict[str, Any]:
    """Return TVM's target for the core of ``board``."""
    found: dict[str, Any] = {
        "kind": "llvm",
        "mtriple": board.llvm_triple,
        "mcpu": board.llvm_cpu,
        "mfloat-abi": "hard" if board.llvm_triple.endswith("hf") else "soft",
        "opt-level": 2,
        "vector-width": 128,
    }
    if board.llvm_abi:
        found["mabi"] = board.llvm_abi
    if board.llvm_attributes:
        found["mattr"] = list(board.llvm_attributes)
    return found


def check_core(board: Board) -> None:
    """Raise :class:`UnsupportedError` if TVM's LLVM does not support the core of ``board``."""
    if not board.llvm_triple:
        raise UnsupportedError(
            f"--codegen llvm: LLVM has no target for {board.core.name}, the core of {board.name}; "
            "build with --codegen c"
        )
    target = tvm.target.Target({"kind": "llvm", "mtriple": board.llvm_triple})
    known = {str(name) for name in tvm.get_global_func("target.llvm_get_cpu_archlist")(target)}
    if board.llvm_cpu not in known:
        raise UnsupportedError(
            f"TVM's LLVM cannot compile for {board.core.name}, the core of {board.name}; "
            "build with --codegen c, which uses the C compiler"
        )


HOST = {"kind": "llvm", "opt-level": 2}
"""TVM's target for this machine."""


def compile_kernels(
    kernels: Mapping[str, Any], target: Mapping[str, Any], prefix: str, alignment: int
) -> CompiledKernels:
    """Return ``kernels`` as functions ``void <prefix>_<name>(pointers..., workspace)``.

    ``target``: ``llvm_target(board)``, or ``HOST``.
    """
    target = dict(target)
    functions, written = {}, {}
    for name, function in flattened(kernels, target).items():
        plain, workspace = _unpacked(name, function, alignment)
        names = unique(identifier(p.name) for p in function.params)
        params = [_param(n, p, function) for n, p in zip(names, function.params, strict=True)]
        if workspace:
            params.append(Param("workspace", "uint8", False))
        kernel = Kernel(name, tuple(params), "", restrict=True)
        written[name] = Written(kernel, workspace)
        symbol = f"{prefix}_{name}"
        functions[ir.GlobalVar(symbol)] = plain.with_attr("global_symbol", symbol)
    module = tvm.IRModule(functions)
    module = tirx.transform.LowerTVMBuiltin()(module)
    built = tvm.get_global_func("target.build.llvm")(module, tvm.target.Target(target))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / OBJECT
        built.write_to_file(str(path), "o")
        return CompiledKernels(written, path.read_bytes())


def _param(name: str, param: tirx.Var, function: tirx.PrimFunc) -> Param:
    stored = {s.buffer for s in parts(function.body, tirx.BufferStore)}
    shown = {declared.buffer: declared.data for declared in parts(function.body, tirx.DeclBuffer)}
    written = {_owner(shown[b]) if b in shown else b for b in stored}
    return Param(name, compat.buffer_dtype(param), param not in written)


def _owner(data: tirx.Expr) -> Any:
    return data if isinstance(data, tirx.Var) else data.args[0]


def _unpacked(name: str, function: tirx.PrimFunc, alignment: int) -> tuple[Any, int]:
    """Return ``function`` with pointer parameters, and the bytes of its workspace."""
    found = [statement.buffer for statement in parts(function.body, tirx.AllocBuffer)]
    large = [b for b in found if buffer_bytes(b) > STACK_LIMIT_BYTES]
    placed = plan([Buffer(f"{i}", 0, 1, buffer_bytes(b), alignment) for i, b in enumerate(large)])
    offsets = dict(zip(large, placed.offsets, strict=True))
    workspace = tirx.Var("workspace", ir.PointerType(ir.PrimType("uint8")))

    def allocation(statement: tirx.AllocBuffer) -> Any:
        buffer = statement.buffer
        if buffer not in offsets:
            return statement
        pointer = tirx.call_intrin(
            tirx.buffer_data_pointer_type(buffer),
            "tirx.handle_add_byte_offset",
            workspace,
            tirx.IntImm("int32", offsets[buffer]),
        )
        return tirx.DeclBuffer(buffer, data=pointer)

    params, head = [], []
    for param in function.params:
        if not compat.is_buffer_param(param):
            raise UnsupportedError(f"{name}: parameter {param.name} is not a tensor")
        pointer = tirx.Var(param.name, ir.PointerType(ir.PrimType(compat.buffer_dtype(param))))
        params.append(pointer)
        head.append(tirx.DeclBuffer(param, data=pointer))
    body = mapped(function.body, tirx.AllocBuffer, allocation)
    if offsets:
        params.append(workspace)
    done = tirx.Return(tirx.IntImm("int32", 0))
    plain = tirx.PrimFunc(params, tirx.SeqStmt([*head, body, done]), ret_type=ir.PrimType("int32"))
    for key, value in (function.attrs or {}).items():
        plain = plain.with_attr(key, value)
    return plain, placed.arena_bytes
