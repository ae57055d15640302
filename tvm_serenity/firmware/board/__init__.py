"""Build a project with a board's compiler and linker, run it in QEMU, and measure it."""
