"""``serenity rows --sliding``: memory and work of one step of incremental inference."""

from rich.markup import escape
from rich.table import Table

from tvm_serenity.cli import show
from tvm_serenity.commands.sliding import SlidingResult


def print_step(result: SlidingResult) -> None:
    """Print the memory and work of a step, and the Pareto-optimal steps if they were computed."""
    model, figures, points = result.model, result.figures, result.points
    facts = {
        "step": f"{figures['step']} new rows of a window of {figures['window']}; "
        f"the first window is full after {figures['steps_to_fill']} steps",
        "work": f"{figures['work']:.1%} of the operations of a complete window",
        "retained rows": f"{figures['kept_bytes']:,} bytes between two steps",
        "arena": f"{figures['arena_bytes']:,} bytes: retained rows and the tensors of a step",
        "proof": f"{figures['outcome']}: no order of this step needs less than "
        f"{figures['lower_bound_bytes']:,} bytes",
        "outputs": "bit-identical to the complete window: rows that read padding are recomputed",
    }
    if figures["causal"] is not None:
        known = figures["causal"]
        facts["network"] = (
            f"a causal variant: past rows replace padding in time, with a window of "
            f"{figures['window']} rows instead of {known['window_before']}; written to "
            f"{known['written']}"
        )
        facts["outputs"] = "bit-identical to that network"
        facts["next"] = f"serenity build {known['written']} --sliding {figures['step']} --board ..."
    if figures["phases"] > 1:
        facts["phases"] = (
            f"{figures['phases']}: after a stride, consecutive steps compute different rows; one "
            "set of rows is retained for each phase"
        )
    if figures["run"] is not None:
        run = figures["run"]
        facts["run"] = f"{run['windows']} windows on the VM, each equal to the unsplit network"
        facts["run"] += "" if run["reference_runtime"] is None else f"; {run['reference_runtime']}"
    if figures["states"]:
        facts["states"] = (
            f"{figures['states']} of the network itself: each step reads only new rows"
        )
        facts["outputs"] = "bit-identical to the network on these rows and states"
    if figures["anew"]:
        facts["recomputed from"] = "; ".join(figures["anew"][:3])
    show.facts(f"{model} as incremental inference", facts)
    if not points:
        return
    table = Table(box=None)
    for name in ("work", "arena", "bound", "retained"):
        table.add_column(name, justify="right")
    table.add_column("tensors", justify="left")
    for point in points:
        steady = point.step.steady
        blocks = [f for f in point.step.blocks if f != steady.source]
        names = ", ".join(steady.network.features[f].name for f in blocks)
        table.add_row(
            f"{point.work:.1%}",
            f"{point.step.arena_bytes:,}",
            f"{point.least_bytes:,}",
            f"{steady.kept_bytes:,}",
            escape(names or "only the input"),
        )
    show.console.print(table)
