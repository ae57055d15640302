"""``sparse bench``: inference time of a sparse network beside MKL, scipy and dense BLAS."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvm_serenity.commands.sparse_network import NamedNetwork, NetworkOptions, subject
from tvm_serenity.options.option import HelpGroup, Option, option

if TYPE_CHECKING:
    from tvm_serenity.sparse.execute.bench import Times


@dataclass(frozen=True, kw_only=True)
class BenchOptions(NetworkOptions):
    """``batch``: columns per run. ``repeats``: timed rounds; the fastest counts."""

    batch: int = option(128, Option(flag="--batch", help="Columns per run.", group=HelpGroup.SPEED))
    repeats: int = option(
        20,
        Option(
            flag="--repeats", help="Rounds; the fastest counts.", group=HelpGroup.SPEED, least=1
        ),
    )


@dataclass(frozen=True)
class Benched:
    """The time of a network with our kernel and with other libraries."""

    network: NamedNetwork
    batch: int
    times: "Times"

    def json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        asked, found = self.network, self.times
        choice = found.run.choice
        return {
            "network": asked.name,
            **asked.facts(),
            "batch": self.batch,
            "rows": choice.rows if choice else None,
            "tile": found.run.tile,
            "staged": bool(choice and choice.staged),
            "together": choice.together if choice else 1,
            "targets": choice.targets if choice else None,
            "ours_us": round(found.ours_us, 3),
            "gflops": round(found.gflops, 3),
            "ceiling_gflops": round(found.ceiling_gflops, 3),
            "baselines_us": {name: round(us, 3) for name, us in found.baselines.items()},
            "speedup": {name: round(found.ratio(name), 3) for name in found.baselines},
            "missing": found.missing,
        }


def bench(options: BenchOptions) -> Benched:
    """Return the time of one inference of a sparse network; a wrong output raises an error."""
    from tvm_serenity.sparse.execute.bench import times

    asked = subject(options)
    return Benched(asked, options.batch, times(asked.net, options.batch, options.repeats))
