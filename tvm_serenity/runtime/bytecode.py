"""A Relax executable in two parts: instructions as plain values, tensors in a file.

A TVM library embeds its constants and copies them when it is loaded. Here a file of constants is
mapped into memory: bytes are read only when a kernel reads them, nothing is copied, and processes
that run the same network share the pages.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import relax

from tvm_serenity.compat import ARENA_ALIGNMENT
from tvm_serenity.errors import UnsupportedError

MAGIC, TENSOR_MAGIC = 0xD225DE2F4214151E, 0xDD5E40F096B4A13F
PACKED, VM_FUNCTION = 0, 1
"""Kinds of functions: from a library, or made of instructions."""
CALL, RETURN, GOTO, IF = 1, 2, 3, 4
INTEGER, FLOAT, DTYPE, TEXT, SHAPE, TENSOR = 1, 3, 5, 65, 69, 70
"""Kinds of constants, numbered as TVM numbers types."""
REGISTER, IMMEDIATE, CONSTANT, FUNCTION = 0, 1, 2, 3
"""Kinds of an instruction's arguments, stored in the highest byte of a word."""
KIND_BIT = 56


@dataclass(frozen=True)
class Bytecode:
    """The instructions and constants of an executable.

    ``functions``: name, parameters and instructions of each. An instruction is its operation, then
    its words; a call's words are the callee, the register of the result, and pairs of kind and
    value (a function's value is its name). ``constants``: pairs of kind and value, in order; a
    tensor's value is its type, its shape and its offset in the file of tensors.
    """

    functions: list[Any]
    constants: list[Any]

    @staticmethod
    def of(executable: relax.VMExecutable, folder: Path) -> tuple["Bytecode", bytes]:
        """Return the bytecode of an executable, and the content of its file of tensors.

        ``folder``: for a temporary copy. Tensors start at multiples of 64 bytes. Equal tensors
        share bytes, and so do tensors of one repeated element. Raises :class:`UnsupportedError` if
        the executable has another format or compiled functions.
        """
        copy = folder / "executable.bin"
        executable.mod.write_to_file(str(copy), "")
        data = copy.read_bytes()
        copy.unlink()
        return _read(_Reader(data))

    def executable(self, tensors: Path, library: tvm.runtime.Module) -> relax.VMExecutable:
        """Return the executable, with tensors mapped from a file and kernels from ``library``."""
        builder = relax.ExecBuilder()
        size = tensors.stat().st_size
        mapped = np.memmap(tensors, np.uint8, "c") if size else np.zeros(0, np.uint8)
        held = [builder.convert_constant(_value(k, v, mapped)) for k, v in self.constants]
        for name, _, _ in self.functions:
            builder.declare_function(name, relax.exec_builder.VMFuncKind.VM_FUNC)
        for name, params, instructions in self.functions:
            with builder.function(name, len(params), params):
                for operation, *words in instructions:
                    _emit(builder, held, operation, words)
        made = builder.get()
        made.mod.import_module(library)
        return made


def _emit(builder: Any, held: Sequence[int], operation: int, words: Sequence[Any]) -> None:
    if operation == CALL:
        name, result, *arguments = words
        make = {
            REGISTER: builder.r,
            IMMEDIATE: builder.imm,
            CONSTANT: held.__getitem__,
            FUNCTION: builder.f,
        }
        builder.emit_call(name, [make[kind](value) for kind, value in arguments], result)
    elif operation == RETURN:
        builder.emit_ret(words[0])
    elif operation == GOTO:
        builder.emit_goto(words[0])
    else:
        builder.emit_if(*words)


def _value(kind: int, value: Any, mapped: Any) -> Any:
    """Return a constant as a TVM object."""
    if kind == TENSOR:
        dtype, shape, offset, size = value
        part = tvm_ffi.from_dlpack(mapped[offset : offset + size])
        return part._create_view(tuple(shape), dtype)
    if kind == DTYPE:
        return tvm.DataType(value)
    return tvm.runtime.ShapeTuple(value) if kind == SHAPE else value


class _Reader:
    """A reader of consecutive values in a byte stream."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, form: str) -> Any:
        """Return the next values of one ``struct`` format: one value, or a tuple."""
        found = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(f"<{form}")
        return found[0] if len(found) == 1 else found

    def bytes(self, size: int) -> bytes:
        """Return the next ``size`` bytes."""
        self.at += size
        return self.data[self.at - size : self.at]

    def text(self) -> str:
        """Return the next string."""
        return self.bytes(self.take("Q")).decode()

    def integers(self, count: int) -> list[int]:
        """Return the next ``count`` 64-bit integers."""
        return list(struct.unpack(f"<{count}q", self.bytes(8 * count)))


def _read(stream: _Reader) -> tuple[Bytecode, bytes]:
    if stream.take("Q") != MAGIC:
        raise UnsupportedError("this version of TVM writes executables in another format")
    stream.text()  # the virtual machine's version
    table = [_function(stream) for _ in range(stream.take("Q"))]
    scopes = [(stream.take("q"), stream.text()) for _ in range(stream.take("Q"))]
    if any(scope for _, scope in scopes):  # a VM that ran leaves empty scopes
        raise UnsupportedError("constants have memory scopes: no processor's memory has")
    payloads: list[tuple[bytes, int]] = []
    constants = [_constant(stream, payloads) for _ in range(stream.take("Q"))]
    offsets, tensors = _placed(payloads)
    left = iter(offsets)
    for kind, value in constants:
        if kind == TENSOR:
            value.insert(2, next(left))
    starts = stream.integers(stream.take("Q"))
    words = stream.integers(stream.take("Q"))
    names = [name for name, *_ in table]
    functions = [
        [name, params, [_instruction(words, start, names) for start in starts[first:stop]]]
        for name, kind, first, stop, params in table
        if kind == VM_FUNCTION
    ]
    return Bytecode(functions, constants), tensors


def _function(stream: _Reader) -> tuple[Any, ...]:
    kind, name = stream.take("i"), stream.text()
    if kind not in (PACKED, VM_FUNCTION):
        raise UnsupportedError(f"function {name!r}: it is compiled code, not VM instructions")
    first, stop, _count, _registers = stream.integers(4)
    return name, kind, first, stop, [stream.text() for _ in range(stream.take("Q"))]


def _constant(stream: _Reader, payloads: list[tuple[bytes, int]]) -> tuple[int, Any]:
    """Return the next constant; append a tensor's bytes and element size to ``payloads``."""
    kind = stream.take("i")
    if kind == TENSOR:
        magic, _reserved, _device, _index, rank = stream.take("QQiii")
        if magic != TENSOR_MAGIC:
            raise UnsupportedError("this version of TVM writes tensors in another format")
        dtype, bits = _dtype(stream)
        shape = stream.integers(rank)
        data = stream.bytes(stream.take("q"))
        payloads.append((data, max((bits + 7) // 8, 1)))
        return kind, [dtype, shape, len(data)]
    if kind == SHAPE:
        return kind, stream.integers(stream.take("Q"))
    if kind == TEXT:
        return kind, stream.text()
    if kind == DTYPE:
        return kind, _dtype(stream)[0]
    if kind in (INTEGER, FLOAT):
        return kind, stream.take("q" if kind == INTEGER else "d")
    raise UnsupportedError(f"a constant is of TVM's type {kind}")


def _dtype(stream: _Reader) -> tuple[str, int]:
    code, bits, lanes = stream.take("BBH")
    return str(tvm_ffi.dtype.from_dlpack_data_type((code, bits, lanes))), bits


def _placed(payloads: Sequence[tuple[bytes, int]]) -> tuple[list[int], bytes]:
    """Return the offset of each tensor, and the file.

    Equal tensors share bytes, and so do tensors of one repeated element.
    """
    keys = [_key(data, width) for data, width in payloads]
    longest: dict[bytes, bytes] = {}
    for key, (data, _) in zip(keys, payloads, strict=True):
        longest[key] = max(longest.get(key, b""), data, key=len)
    at, file = {}, bytearray()
    for key, data in longest.items():
        at[key] = len(file)
        file += data + bytes(-len(data) % ARENA_ALIGNMENT)
    return [at[key] for key in keys], bytes(file)


def _key(data: bytes, width: int) -> bytes:
    """Return a key that is equal for tensors that may share bytes."""
    first = data[:width]
    return first if first * (len(data) // width) == data else data


def _instruction(words: Sequence[int], start: int, names: Sequence[str]) -> list[Any]:
    operation = words[start]
    if operation == CALL:
        result, callee, count = words[start + 1 : start + 4]
        arguments = [_argument(word, names) for word in words[start + 4 : start + 4 + count]]
        return [CALL, names[callee], result, *arguments]
    return [operation, *words[start + 1 : start + (3 if operation == IF else 2)]]


def _argument(word: int, names: Sequence[str]) -> tuple[int, Any]:
    kind, value = (word >> KIND_BIT) & 255, word & ((1 << KIND_BIT) - 1)
    value -= (value >> (KIND_BIT - 1)) << KIND_BIT  # signed
    return kind, names[value] if kind == FUNCTION else value
