"""A project with start-up code, linker script, example and test harness for its board."""

from tvm_serenity.firmware.emit.project import project as written

__all__ = ["written"]
