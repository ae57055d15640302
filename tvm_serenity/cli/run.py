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
    """Run DIR once and print its outputs, by default in QEMU if the board has a machine there.

    Without --input the inputs of the reference are used. Instructions are those QEMU emulated for
    one run of the network: not cycles. A window that moves (serenity build --sliding) runs over a
    stream of rows: the outputs are those of its last window, the instructions those of a step.
    """
    found = run(directory, options, show.progress)
    if shown.json:
        show.print_json(found.json())
        return
    project = found.project
    rows = {t["name"]: f"{t['dtype']} {tuple(t['shape'])}: {_short(a)}" for t, a in found.named}
    if found.instructions is not None:
        rows["instructions"] = f"{found.instructions:,} emulated (not cycles)"
        rows["stack"] = f"{found.stack_bytes:,} bytes"
    rows |= latency_line.rows(latency_line.estimated(project))
    show.facts(f"{project.metadata['name']} on {found.where}", rows)


def _short(array: np.ndarray[Any, Any]) -> str:
    values = array.reshape(-1)
    text = ", ".join(f"{v:g}" for v in values[:12].tolist())
    return text + (f", ... ({values.size})" if values.size > 12 else "")
