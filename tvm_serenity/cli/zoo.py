"""``serenity zoo``: the networks built in."""

from rich.table import Table

from tvm_serenity import zoo
from tvm_serenity.cli import app, show
from tvm_serenity.cli.options import Json


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
    table.add_column("name", no_wrap=True)
    table.add_column("what it is")
    table.add_column("parameters (default)")
    for name, entry in zoo.NAMES.items():
        own = ", ".join(f"{p.name}={p.default}" for p in entry.own)
        table.add_row(f"zoo:{name}", entry.description, own)
    show.console.print(table)
    entry = next(iter(zoo.NAMES.values()))
    common = {p.name: f"{p.default}: {p.help}" for p in entry.params if p not in entry.own}
    show.facts("every network also takes", common)
