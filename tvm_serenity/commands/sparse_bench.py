"""``sparse bench``: a network's time against MKL, scipy and dense BLAS."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvm_serenity.commands.sparse_network import NamedNetwork, NetworkOptions, subject
from tvm_serenity.options.option import HelpGroup, Option, option

if TYPE_CHECKING:
    from tvm_serenity.sparse.execute.bench import Times


@dataclass(frozen=True, kw_only=True)
class BenchOptions(NetworkOptions):
    """``batch``: columns computed at a time. ``repeats``: rounds, of which the least counts."""

    batch: int = option(
        128, Option(flag="--batch", help="Columns computed at a time.", group=HelpGroup.SPEED)
    )
    repeats: int = option(
        20,
        Option(flag="--repeats", help="Rounds; the least counts.", group=HelpGroup.SPEED, least=1),
    )


@dataclass(frozen=True)
class Benched:
    """A network's times beside those of its rivals."""

    network: NamedNetwork
    batch: int
    times: "Times"

    def json(self) -> dict[str, Any]:
        """Return what JSON says of it."""
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
            "rivals_us": {name: round(us, 3) for name, us in found.rivals.items()},
            "speedup": {name: round(found.ratio(name), 3) for name in found.rivals},
            "missing": found.missing,
        }


def bench(options: BenchOptions) -> Benched:
    """Return what one inference of a sparse network takes; each run is exact, or an error."""
    from tvm_serenity.sparse.execute.bench import times

    asked = subject(options)
    return Benched(asked, options.batch, times(asked.net, options.batch, options.repeats))
