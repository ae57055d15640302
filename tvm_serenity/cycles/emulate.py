"""Runs a linked program in Unicorn, with a hook of the native driver before each instruction.

Unicorn's memory hooks do not work in conditional blocks (2.1.4). So the driver computes the
addresses of loads and stores from the registers. The hook is a pointer to a native function.
"""

import ctypes
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from tvm_serenity.boards import Board, MemoryRegion
from tvm_serenity.cycles.elf import LinkedProgram
from tvm_serenity.cycles.families import FAMILIES, family_of
from tvm_serenity.cycles.families.record import LINK, PC, SP
from tvm_serenity.errors import InputError, MissingPartError

PAGE = 4096

RETURN = 0x9FFF_0000
"""The return address of calls by this module: executable, and above all memory of boards."""

SETUP_US = 60_000_000
WRITE0, EXITS = 0x04, (0x18, 0x20)
LIMIT = 20_000_000_000
"""Number of instructions after which a run is stopped as endless."""


PARTS = tuple(sorted({part for family in FAMILIES.values() for part in family.parts}))
"""The Python packages that emulate and decode, of all families."""


def installed() -> bool:
    """Return whether the emulator, the disassembler and the native driver are installed."""
    return all(find_spec(part) is not None for part in PARTS) and native()


def require() -> None:
    """Raise :class:`MissingPartError`, which names the missing part."""
    for part in PARTS:
        if find_spec(part) is None:
            raise MissingPartError(f"{part} is not installed: pip install 'tvm-serenity[firmware]'")
    if not native():
        raise MissingPartError(
            "the native driver is not installed; install a C++17 compiler and reinstall "
            "tvm-serenity"
        )


def native() -> bool:
    """Return whether the native driver is installed."""
    return find_spec("tvm_serenity._cycles") is not None


class Machine:
    """An emulated board with a program in its memory, at the program's entry."""

    def __init__(self, program: LinkedProgram, board: Board, model: str) -> None:
        require()
        self.program, self.board, self.family = program, board, family_of(model)
        self.engine = self.family.unicorn(self.family.models[model])
        self.registers = self.family.registers()
        self._error: str = ""
        self._ended = False
        self._map()
        self._hook()

    def register(self, number: int) -> int:
        """Return the value of register ``number`` (``cycles.families.record``)."""
        return int(self.engine.reg_read(self.registers[number]))

    def set_register(self, number: int, value: int) -> None:
        """Set register ``number`` to ``value``."""
        self.engine.reg_write(self.registers[number], value)

    def code_at(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes of memory at ``address``."""
        return bytes(self.engine.mem_read(address, size))

    def write(self, address: int, data: bytes) -> None:
        """Write ``data``; raise :class:`InputError` outside of the board's memory."""
        region = self._region(address)
        if region is None or address + len(data) > region.address + region.size_bytes:
            raise InputError(
                f"{len(data)} bytes at {address:#x} are outside of the memory of {self.board.name}"
            )
        self.engine.mem_write(address, data)

    def start(self) -> None:
        """Set the stack pointer from the vector table, if there is one, and the return address.

        Without one, the stack begins at the end of the largest RAM.
        """
        vectors = min(s.load_address for s in self.program.segments)
        top = int.from_bytes(self.code_at(vectors, 4), "little") if self.family.vectors else 0
        if self._region(top - 4) is None or top % 4:
            largest = max(
                (r for r in self.board.regions if r.kind != "flash"), key=lambda r: r.size_bytes
            )
            top = largest.address + largest.size_bytes
        self.set_register(SP, top)
        self.set_register(LINK, self._code(RETURN))

    def run_to(self, begin: int, end: int, timeout_us: int = SETUP_US) -> None:
        """Run from ``begin`` to ``end``; raise :class:`InputError` if ``end`` is not reached."""
        import unicorn

        self._ended = False
        try:
            self.engine.emu_start(self._code(begin), end, timeout_us)
        except unicorn.UcError as error:
            raise self._fault(str(error)) from None
        if self._error:
            raise InputError(f"{self.program.path}: {self._error}")
        if self.register(PC) & ~1 != end & ~1:
            at = self.program.functions().name_at(self.register(PC))
            raise InputError(
                f"{self.program.path}: {_name(self.program, end)} was not reached; the program "
                f"stopped in {at}"
            )

    def call(self, address: int) -> int:
        """Call the function at ``address`` without arguments, and return its result."""
        saved = [self.register(i) for i in range(len(self.registers))]
        self.set_register(LINK, self._code(RETURN))
        self.run_to(address, RETURN)
        result = self.register(self.family.result)
        for number, value in enumerate(saved):
            self.set_register(number, self._code(value) if number == PC else value)
        return result

    def follow(self, follower: Any, hook_address: int, begin: int, end: int) -> None:
        """Run from ``begin`` to ``end`` with the driver's hook before each instruction."""
        import unicorn
        from unicorn.unicorn_py3 import unicorn as binding

        library = binding.uclib
        handle = ctypes.c_void_p(self.engine._uch.value)
        reg_read, stop = (
            ctypes.cast(getattr(library, name), ctypes.c_void_p).value
            for name in ("uc_reg_read", "uc_emu_stop")
        )
        follower.follow(reg_read, stop, handle.value, self.registers, begin)
        hook = ctypes.c_size_t()
        add = ctypes.CDLL(library._name).uc_hook_add
        add.restype = ctypes.c_int
        status = add(
            handle,
            ctypes.byref(hook),
            ctypes.c_int(unicorn.UC_HOOK_CODE),
            ctypes.c_void_p(hook_address),
            ctypes.c_void_p(follower.address),
            ctypes.c_uint64(1),
            ctypes.c_uint64(0),
        )
        if status:
            raise InputError(
                f"{self.program.path}: Unicorn did not accept the hook (status {status})"
            )
        try:
            self.run_to(begin, end, 0)
        except InputError:
            if follower.error is not None:
                raise follower.error from None
            raise
        if follower.error is not None:
            raise follower.error
        follower.finish(end & ~1)

    def _map(self) -> None:
        for first, size in _pages(self.board.regions):
            self.engine.mem_map(first, size)
        self.engine.mem_map(RETURN & ~(PAGE - 1), PAGE)
        for segment in self.program.segments:
            for address in {segment.load_address, segment.address}:
                region = self._region(address)
                end = address + len(segment.data)
                if region is None or end > region.address + region.size_bytes:
                    raise InputError(
                        f"{self.program.path}: {len(segment.data)} bytes at {address:#x} are "
                        f"outside of the memory of {self.board.name}"
                    )
                self.engine.mem_write(address, segment.data)

    def _hook(self) -> None:
        import unicorn

        def left(_e: Any, _kind: int, address: int, _size: int, _value: int, _data: Any) -> bool:
            at = self.program.functions().name_at(self.register(PC)) or hex(self.register(PC))
            self._error = f"{at} accesses {address:#x}, outside of the memory of {self.board.name}"
            return False

        def interrupt(_engine: Any, number: int, _data: Any) -> None:
            pc, operation = self.register(PC), self.register(self.family.result)
            after = self.family.request(number, pc, self.code_at)
            if after is not None and operation not in EXITS:
                self.set_register(self.family.result, 0 if operation == WRITE0 else 2**32 - 1)
                self.set_register(PC, self._code(after))
                return
            if not self._error:
                at = self.program.functions().name_at(pc) or hex(pc)
                self._error = f"exception {number} ended the program in {at}"
            self.engine.emu_stop()

        self.engine.hook_add(unicorn.UC_HOOK_MEM_INVALID, left)
        self.engine.hook_add(unicorn.UC_HOOK_INTR, interrupt)

    def _region(self, address: int) -> MemoryRegion | None:
        return next(
            (r for r in self.board.regions if r.address <= address < r.address + r.size_bytes), None
        )

    def _code(self, address: int) -> int:
        """Return ``address`` as a branch to it has it."""
        return address | self.family.instruction_set

    def _fault(self, said: str) -> InputError:
        pc = self.register(PC)
        at = self.program.functions().name_at(pc) or hex(pc)
        return InputError(f"{self.program.path}: {self._error or f'{said} in {at}'}")


def _pages(regions: tuple[MemoryRegion, ...]) -> list[tuple[int, int]]:
    """Return disjoint ranges of full pages that cover ``regions``, as addresses and sizes."""
    pages: list[list[int]] = []
    for region in sorted(regions, key=lambda r: r.address):
        first = region.address // PAGE * PAGE
        end = -(-(region.address + region.size_bytes) // PAGE) * PAGE
        if pages and first <= pages[-1][1]:
            pages[-1][1] = max(end, pages[-1][1])
        else:
            pages.append([first, end])
    return [(first, end - first) for first, end in pages]


def _name(program: LinkedProgram, address: int) -> str:
    return next(
        (s.name for s in program.symbols if s.code and s.address == address & ~1), hex(address)
    )


Setup = Callable[[Machine], None]
"""A function that prepares a machine when the measured function is reached."""
