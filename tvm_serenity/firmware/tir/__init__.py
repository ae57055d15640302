"""From TVM to a :class:`~tvm_serenity.firmware.program.Program`."""
