"""``serenity run``: run a firmware project on the host or under QEMU."""

from typing import Any

import numpy as np

from tvm_serenity.cli import latency_line, show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.options import Directory
from tvm_serenity.commands.run import RunOptions, run
from tvm_serenity.options.output import Shown


@command("run")
def run_command(directory: Directory, options: RunOptions, shown: Shown) -> None:
    """Run DIR once and print its outputs, by default in QEMU if it emulates the board.

    Without --input, the run uses the inputs of the recorded reference. The printed instructions are
    those that QEMU emulates for one run, not cycles. Streaming firmware (serenity build --sliding)
    runs over a stream of rows: the outputs are those of the last window, the instructions those of
    one step.
    """
    result = run(directory, options, show.progress)
    if shown.json:
        show.print_json(result.json())
        return
    project = result.project
    rows = {t["name"]: f"{t['dtype']} {tuple(t['shape'])}: {_short(a)}" for t, a in result.named}
    if result.instructions is not None:
        rows["instructions"] = f"{result.instructions:,} emulated (not cycles)"
        rows["stack"] = f"{result.stack_bytes:,} bytes"
    rows |= latency_line.rows(latency_line.estimated(project))
    show.facts(f"{project.metadata['name']} on {result.where}", rows)


def _short(array: np.ndarray[Any, Any]) -> str:
    values = array.reshape(-1)
    text = ", ".join(f"{v:g}" for v in values[:12].tolist())
    return text + (f", ... ({values.size})" if values.size > 12 else "")
