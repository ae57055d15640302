"""``python -m tvm_serenity``: the command line."""

from tvm_serenity.cli import run

run()
