"""``serenity rows --sliding``: what a step of a window that moves along a stream takes."""

from rich.markup import escape
from rich.table import Table

from tvm_serenity.cli import show
from tvm_serenity.commands.sliding import SlidingFound


def print_step(found: SlidingFound) -> None:
    """Print what a step takes, and the steps that none beats where they are asked for."""
    model, result, points = found.model, found.figures, found.points
    facts = {
        "step": f"{result['step']} of {result['window']} rows; "
        f"the first window is full after {result['steps_to_fill']} steps",
        "work": f"{result['work']:.1%} of the operations of a whole window",
        "kept": f"{result['kept_bytes']:,} bytes between two steps",
        "arena": f"{result['arena_bytes']:,} bytes, with what a step works on",
        "proof": f"{result['outcome']}: no order of this step needs less than "
        f"{result['lower_bound_bytes']:,} bytes",
        "outputs": "those of the whole window, bit for bit: rows that see padding are made again",
    }
    if result["causal"] is not None:
        known = result["causal"]
        facts["network"] = (
            f"another one: rows of the past instead of padding in time, a window of "
            f"{result['window']} rows instead of {known['window_before']}; written to "
            f"{known['written']}"
        )
        facts["outputs"] = "those of that network, bit for bit"
        facts["next"] = f"serenity build {known['written']} --sliding {result['step']} --board ..."
    if result["phases"] > 1:
        facts["phases"] = (
            f"{result['phases']}: behind a stride, rows of one step are others than those of the "
            f"next; as many sets of them are kept and take turns"
        )
    if result["run"] is not None:
        said = result["run"]
        facts["run"] = f"{said['windows']} windows on the Relax VM, each as the whole network's"
        facts["run"] += (
            "" if said["reference_runtime"] is None else f"; {said['reference_runtime']}"
        )
    if result["states"]:
        facts["states"] = (
            f"{result['states']}, which the network keeps itself: each step takes in new rows alone"
        )
        facts["outputs"] = "those of the network on these rows and its states, bit for bit"
    if result["anew"]:
        facts["made anew from"] = "; ".join(result["anew"][:3])
    show.facts(f"{model} on a window that moves", facts)
    if not points:
        return
    table = Table(box=None)
    for name in ("work", "arena", "no less than", "kept"):
        table.add_column(name, justify="right")
    table.add_column("of", justify="left")
    for point in points:
        steady = point.step.steady
        blocks = [f for f in point.step.blocks if f != steady.source]
        names = ", ".join(steady.network.features[f].name for f in blocks)
        table.add_row(
            f"{point.work:.1%}",
            f"{point.step.arena_bytes:,}",
            f"{point.least_bytes:,}",
            f"{steady.kept_bytes:,}",
            escape(names or "the input alone"),
        )
    show.console.print(table)
