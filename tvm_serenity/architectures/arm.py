"""Arm Cortex-M."""

from tvm_serenity.architectures.record import Architecture, Emulator, Sections, Toolchain

ARCHITECTURE = Architecture(
    name="arm",
    title="Arm Cortex-M",
    files=("startup.c", "trap.h", "clock.h"),
    known_toolchain=Toolchain(
        elf_machine=40,
        prefix="arm-none-eabi-",
        packages={
            "arm-none-eabi-gcc": "gcc-arm-none-eabi libnewlib-arm-none-eabi",
            "qemu-system-arm": "qemu-system-arm",
        },
        compiled="",
        linked="--specs=nano.specs --specs=nosys.specs",
        sections=Sections(
            entry="Reset_Handler",
            more={".ARM.exidx": "*(.ARM.exidx*) *(.ARM.extab*)"},
            discarded="*(.ARM.attributes.none)",
        ),
        emulator=Emulator(
            program="qemu-system-arm",
            options=("-semihosting-config", "enable=on,target=native"),
            machines={  # the frequency of SysTick, measured where it differs from the board's
                "mps2-an385": 25_000_000,
                "mps2-an386": 25_000_000,
                "mps2-an500": 25_000_000,
                "mps2-an505": 20_000_000,
                "mps2-an521": 20_000_000,
                "mps3-an547": 32_000_000,
                "netduino2": 120_000_000,
                "netduinoplus2": 168_000_000,
                "stm32vldiscovery": 24_000_000,
                "lm3s6965evb": 12_500_000,
                "microbit": 16_000_000,
            },
        ),
    ),
)
