"""``serenity zoo``: list the built-in networks."""

from rich.table import Table

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.commands.zoo import zoo
from tvm_serenity.options.output import Shown


@command("zoo")
def zoo_command(shown: Shown) -> None:
    """List the built-in networks and their parameters.

    MODEL may be zoo:NAME or zoo:NAME?param=value&param=value.
    """
    networks = zoo()
    if shown.json:
        show.print_json(
            {
                name: {
                    "description": entry.description,
                    "source": entry.source,
                    "params": {
                        p.name: {"default": p.default, "help": p.help} for p in entry.params
                    },
                }
                for name, entry in networks.items()
            }
        )
        return
    table = Table(box=None)
    table.add_column("name", no_wrap=True)
    table.add_column("description")
    table.add_column("parameters (default)")
    for name, entry in networks.items():
        own = ", ".join(f"{p.name}={p.default}" for p in entry.own)
        table.add_row(f"zoo:{name}", entry.description, own)
    show.console.print(table)
    entry = next(iter(networks.values()))
    common = {p.name: f"{p.default}: {p.help}" for p in entry.params if p not in entry.own}
    show.facts("every network also takes", common)
