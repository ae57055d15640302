"""``serenity sparse figures``: the paper's figures 2 to 8."""

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.sparse import sparse_app
from tvm_serenity.commands.sparse_figures import FiguresOptions, figures


@command("figures", within=sparse_app)
def figures_command(options: FiguresOptions) -> None:
    """Regenerate the paper's Figures 2 to 8, ours beside the paper's method.

    Writes figureN.svg, and figureN.json with the median, minimum and maximum over five random
    networks. "start" is the 2-optimal order, "paper" the paper's Connection Reordering (T = 10^6,
    ended by the time limit), "ours" the order "auto" (figures 2 to 6) or our execution (7 and 8).
    Figures 6 and 8 prune random weights of BERT's shape, or the perceptron of --onnx.

    [dim]Examples[/dim]
      serenity sparse figures -o figures --only 2,3
      serenity sparse figures -o figures --quick
    """
    for one in figures(options):
        show.console.print(f"figure {one.number}: {one.title}: {one.file}")
