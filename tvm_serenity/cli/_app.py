"""The Typer application that every command registers with."""

import typer

from tvm_serenity import __version__

app = typer.Typer(
    name="serenity",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"tvm-serenity {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Order a neural network's operators for the least memory, plan one arena, run it on TVM.

    MODEL is a .tflite or .onnx file, a graph in text form (.txt, .graph), or zoo:NAME.
    """
