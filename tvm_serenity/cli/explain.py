"""``serenity explain``: why the peak is where it is, and what would lower it."""

from collections.abc import Sequence

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.options import Model
from tvm_serenity.commands.explain import ExplainOptions, explain
from tvm_serenity.explain import Claim
from tvm_serenity.explain.signatures import SIGNATURES
from tvm_serenity.options.output import Shown

HEADINGS = {
    SIGNATURES: "What is read",
    "peak": "Where the peak is",
    "order": "Where the peak is",
    "bound": "What no order can change",
    "measure": "What would lower it",
    "refused": "What would lower it",
    "rows-floor": "Where bands of rows stop",
    "verdict": "So",
    "channels": "What need not be computed",
    "ram": "On the board",
    "flash": "On the board",
    "conflict": "On the board",
    "way-out": "On the board",
}


@command("explain")
def explain_command(model: Model, options: ExplainOptions, shown: Shown) -> None:
    """Say why MODEL's peak is where it is, and what would lower it.

    Every claim is computed: the best order and its proof, elementwise operators in place, copies
    as views, folded concats, rewriting, operators split into bands of rows, and what is left at the
    peak where bands stop helping. With --board, whether
    the network fits it, and if not, which tensors stand in the way. Of a quantised file, also which
    channels are constant or not read.

    [dim]Examples[/dim]
      serenity explain model.tflite
      serenity explain zoo:swiftnet --board nucleo-f767zi
    """
    show.warn_without_core()
    found = explain(model, options, show.progress)
    if shown.json:
        show.print_json(found.json())
    else:
        _print(model, found.claims)


def _print(model: str, claims: Sequence[Claim]) -> None:
    show.console.print(f"{model}", style="bold", markup=False)
    heading = ""
    for claim in claims:
        if HEADINGS[claim.kind] != heading:
            heading = HEADINGS[claim.kind]
            show.console.print(f"\n{heading}", style="bold cyan", markup=False)
        show.console.print(f"  {claim.text}", markup=False, soft_wrap=not show.console.is_terminal)
