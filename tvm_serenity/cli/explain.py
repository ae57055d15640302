"""``serenity explain``: the cause of the peak, and the measures that lower it."""

from collections.abc import Sequence

from rich.padding import Padding
from rich.text import Text

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.options import Model
from tvm_serenity.commands.explain import ExplainOptions, explain
from tvm_serenity.explain import Claim
from tvm_serenity.explain.best import ALONE, BUILD, COMMAND, LEAST
from tvm_serenity.explain.memories import MEMORIES
from tvm_serenity.explain.signatures import SIGNATURES
from tvm_serenity.explain.states import KEPT
from tvm_serenity.options.output import Shown

HEADINGS = {
    BUILD: "Best build",
    LEAST: "Least memory",
    ALONE: "Least memory",
    COMMAND: "",  # under the heading before it
    SIGNATURES: "Entry points",
    KEPT: "States",
    "peak": "The peak",
    "order": "The peak",
    "bound": "Lower bound of every order",
    "measure": "Measures that lower the peak",
    "refused": "Measures that lower the peak",
    "rows-floor": "Limit of bands of rows",
    "channels": "Channels without effect",
    "ram": "Best build",
    "flash": "Best build",
    "conflict": "Best build",
    "way-out": "Best build",
    MEMORIES: "Two memories",
}


@command("explain")
def explain_command(model: Model, options: ExplainOptions, shown: Shown) -> None:
    """Explain the peak of MODEL, and which measures lower it.

    The first lines are the answer: with --board the best build for it, as serenity build finds it
    (RAM, flash with code, milliseconds), else the least memory and its price in time; then what
    ordering alone gives, and the command that builds the answer.

    Each measure is computed, not estimated: the best order with its proof, in-place elementwise
    operators, copies as views, folded concats, rewriting, and bands of rows with the tensors that
    limit them. For a quantised file, it also counts channels that are constant or unread.

    [dim]Examples[/dim]
      serenity explain model.tflite
      serenity explain kws.tflite --board nucleo-l4r5zi
    """
    show.warn_without_core()
    explained = explain(model, options, show.progress)
    if shown.json:
        show.print_json(explained.json())
    else:
        _print(model, explained.claims)


def _print(model: str, claims: Sequence[Claim]) -> None:
    show.console.print(f"{model}", style="bold", markup=False)
    heading = ""
    for claim in claims:
        if HEADINGS[claim.kind] not in ("", heading):
            heading = HEADINGS[claim.kind]
            show.console.print(f"\n{heading}", style="bold cyan", markup=False)
        if show.console.is_terminal:
            show.console.print(Padding(Text(claim.text), (0, 0, 0, 2)))
        else:  # one line for a claim, which other programs can search
            show.console.print(f"  {claim.text}", markup=False, soft_wrap=True)
