"""A board's compilers, linker and emulator: build a project, run it, measure it."""
