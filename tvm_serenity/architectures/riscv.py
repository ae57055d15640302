"""RISC-V of 32 bits, with Debian's compiler and picolibc."""

from tvm_serenity.architectures.record import Architecture, Emulator, Sections, Toolchain

ARCHITECTURE = Architecture(
    name="riscv",
    title="32-bit RISC-V",
    files=("startup.c", "trap.h", "clock.h", "csr.h"),
    known_toolchain=Toolchain(
        elf_machine=243,
        prefix="riscv64-unknown-elf-",
        packages={
            "riscv64-unknown-elf-gcc": "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf",
            "qemu-system-riscv32": "qemu-system-misc",
        },
        compiled="--specs=picolibc.specs",
        linked="",  # the linker gets those of the compiler, too
        sections=Sections(
            entry="start",
            constants="*(.srodata*) *(.rodata*)",
            data="__global_pointer$ = . + 0x800; *(.sdata*) *(.data*)",
            zeroed="*(.sbss*) *(.bss*) *(COMMON)",
            more={},
            discarded="*(.riscv.attributes.none)",
        ),
        emulator=Emulator(
            program="qemu-system-riscv32",
            options=("-bios", "none", "-semihosting-config", "enable=on,target=native"),
            machines={"virt": 1_000_000_000},  # with -icount, minstret counts nanoseconds
        ),
    ),
)
