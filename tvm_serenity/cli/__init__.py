"""The command ``serenity``: one file a command, here what they share and how errors end.

Exit status: 0 done, 1 the answer is no (nothing fits, a wrong result), 2 bad input or a missing
part (one line on standard error), 130 interrupted.
"""

import os
import sys

import typer

from tvm_serenity import __version__
from tvm_serenity.errors import SerenityError
from tvm_serenity.frontends.model_file import printable

app = typer.Typer(
    name="serenity",
    no_args_is_help=True,
    add_completion=False,
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


def main() -> None:
    """Run the command line and end the process with its exit status."""
    from tvm_serenity.cli import commands  # noqa: F401  (registers the commands)

    try:
        status = app(standalone_mode=False)
    except SerenityError as error:
        _end(" ".join(str(error).split()), error.exit_status)
    except typer.Abort:
        _end("interrupted", 130)
    except KeyboardInterrupt:
        _end("interrupted", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if hasattr(error, "format_message"):  # click's own: a wrong option or argument
            _end(error.format_message(), 2)
        raise
    sys.exit(status if isinstance(status, int) else 0)


def _end(message: str, status: int) -> None:
    print(f"serenity: {printable(message)}", file=sys.stderr)
    sys.exit(status)
