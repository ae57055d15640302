"""``serenity zoo``: the networks built in."""

from rich.table import Table

from tvm_serenity import zoo
from tvm_serenity.cli import app, show
from tvm_serenity.cli.schedule import Json


@app.command("zoo")
def zoo_command(json: Json = False) -> None:
    """List the built-in networks and their parameters.

    Use one as zoo:NAME or zoo:NAME?param=value&param=value.
    """
    if json:
        show.print_json(
            {
                name: {
                    "description": entry.description,
                    "source": entry.source,
                    "params": {
                        p.name: {"default": p.default, "help": p.help} for p in entry.params
                    },
                }
                for name, entry in zoo.NAMES.items()
            }
        )
        return
    table = Table(box=None)
    for column in ("name", "what it is", "parameters (default)"):
        table.add_column(column)
    for name, entry in zoo.NAMES.items():
        params = ", ".join(f"{p.name}={p.default}" for p in entry.params)
        table.add_row(f"zoo:{name}", entry.description, params)
    show.console.print(table)
