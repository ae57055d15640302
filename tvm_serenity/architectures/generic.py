"""Any little-endian core of 32 bits: portable C, whose port the user writes."""

from tvm_serenity.architectures.record import Architecture

ARCHITECTURE = Architecture(name="generic", title="any core", known_toolchain=None, files=())
