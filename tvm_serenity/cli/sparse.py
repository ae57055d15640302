"""``serenity sparse``: commands for sparse networks."""

import typer

from tvm_serenity.cli import app
from tvm_serenity.cli._app import Commands

sparse_app = typer.Typer(
    name="sparse",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Sparse feed-forward networks: I/O-efficient orders, growth, firmware, times, figures.",
)
app.add_typer(sparse_app)
