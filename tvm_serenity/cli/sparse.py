"""``serenity sparse``: the commands on sparse networks."""

import typer

from tvm_serenity.cli import app

sparse_app = typer.Typer(
    name="sparse",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Sparse feed-forward networks: I/O-efficient orders, growth, execution, figures.",
)
app.add_typer(sparse_app)
