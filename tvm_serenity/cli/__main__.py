"""``python -m tvm_serenity.cli``."""

from tvm_serenity.cli import run

run()
