"""The options of ``offchip``."""

from dataclasses import dataclass

from tvm_serenity.errors import InputError
from tvm_serenity.offchip import (
    ORDERS,
    POLICIES,
    InputPlace,
    Memory,
    Model,
    SearchOptions,
    Weights,
    capacities_of,
)
from tvm_serenity.offchip.energy import REGIONS
from tvm_serenity.options.model import ReadOptions
from tvm_serenity.options.option import (
    BYTES,
    Conflict,
    HelpGroup,
    Need,
    Option,
    described,
    differing,
    option,
)
from tvm_serenity.options.output import OUTPUT, PLOT
from tvm_serenity.options.speed import JOBS, Sweeping, TimeLimit
from tvm_serenity.system.sizes import size_bytes

WHOLE = "tensor"
TRAFFIC = "traffic"
_ONE = (Need("order_for", "it is about one order"),)
_SWEEP = (Conflict("order_for", "it is about a sweep"),)


def block_of(text: str) -> int | None:
    """Return the bytes that are moved at a time; None: whole tensors."""
    try:
        return None if text == WHOLE else size_bytes(text, least=1)
    except InputError as error:
        raise InputError(f"--block: {error}") from None


def sizes_of(text: str) -> tuple[int, ...]:
    """Return the capacities that a list of sizes and ranges names."""
    try:
        return tuple(capacities_of(text))
    except InputError as error:
        raise InputError(f"--capacities: {error}") from None


def names_of(text: str) -> tuple[str, ...]:
    """Return the names of a list with commas, each once."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


@dataclass(frozen=True, kw_only=True)
class OffchipOptions(ReadOptions, TimeLimit, Sweeping):
    """What is measured, and which order is looked for.

    * ``capacities``: of on-chip memory. ``orders`` of ``ORDERS``, ``policy`` of ``POLICIES``.
      ``block_bytes``: moved at a time; None: whole tensors. ``memory``: write-back cache, or
      software-managed. ``input_place``: where inputs start. ``weights``: whether they count.
    * ``energy``: a region of ``REGIONS``, or FILE.toml:NAME. ``plot``: SERENITY's figure 11.
    * ``order_for``: "traffic" finds an order of one model for ``capacity_bytes``, written to
      ``output``. ``effort``: accesses simulated in search of it, in millions. ``seed``: of that.
    """

    capacities: str = option(
        "32K:256K:x2",
        Option(
            flag="--capacities",
            help="On-chip memory: sizes, FIRST:LAST:xFACTOR or :+STEP.",
            group=HelpGroup.MEMORY,
            metavar="SIZES",
            check=sizes_of,
            conflicts=_SWEEP,
        ),
    )
    orders: str = option(
        "given,serenity",
        Option(
            flag="--orders",
            help=f"Of {', '.join(ORDERS)}.",
            group=HelpGroup.MEMORY,
            metavar="NAMES",
            conflicts=_SWEEP,
        ),
    )
    policy: str = option(
        "belady",
        Option(
            flag="--policy",
            help=f"Of {', '.join(POLICIES)}.",
            group=HelpGroup.MEMORY,
            metavar="NAMES",
            conflicts=_SWEEP,
        ),
    )
    block: str = option(
        "256",
        Option(
            flag="--block",
            help=f"Bytes moved at a time, or {WHOLE!r} (scratchpad).",
            group=HelpGroup.MEMORY,
            metavar="SIZE",
            check=block_of,
        ),
    )
    memory: Memory = option(
        Memory.CACHE,
        Option(
            flag="--memory", help="Write-back cache, or software-managed.", group=HelpGroup.MEMORY
        ),
    )
    input_place: InputPlace = option(
        InputPlace.OFF_CHIP,
        Option(flag="--input-place", help="Where graph inputs start.", group=HelpGroup.MEMORY),
    )
    weights: Weights = option(
        Weights.NONE,
        Option(
            flag="--weights",
            help="Count weights, streamed by every op that reads them.",
            group=HelpGroup.MEMORY,
        ),
    )
    energy: str | None = option(
        None,
        Option(
            flag="--energy",
            help=f"Add energy and time: {', '.join(REGIONS)}, or FILE.toml:NAME.",
            metavar="REGION",
            conflicts=_SWEEP,
        ),
    )
    plot: str | None = option(
        None,
        differing(PLOT, help="Draw SERENITY's figure 11 (.svg .png .pdf).", conflicts=_SWEEP),
    )
    jobs: int = option(1, differing(JOBS, help="Processes on this machine.", conflicts=_SWEEP))
    dask: str | None = option(
        None,
        differing(
            described(Sweeping, "dask"),
            conflicts=(*_SWEEP, Conflict("time_limit_s", "other machines have other clocks")),
        ),
    )
    order_for: str | None = option(
        None,
        Option(
            flag="--order-for",
            help="Find an order of one MODEL for one --capacity.",
            group=HelpGroup.MEMORY,
            choices=(TRAFFIC,),
            needs=(Need("capacity_bytes", "the order is made for one capacity"),),
        ),
    )
    capacity_bytes: int | None = option(
        None,
        Option(
            flag="--capacity",
            help="The capacity for --order-for.",
            group=HelpGroup.MEMORY,
            unit=BYTES,
            least=1,
            needs=_ONE,
        ),
    )
    output: str | None = option(
        None, differing(OUTPUT, help="With --order-for: the model reordered.", needs=_ONE)
    )
    effort: int = option(
        60,
        Option(
            flag="--effort",
            help="Accesses simulated in search of an order, in millions.",
            group=HelpGroup.SPEED,
            least=0,
        ),
    )
    seed: int = option(
        0, Option(flag="--seed", help="Seed of that search.", group=HelpGroup.SPEED, least=0)
    )

    @property
    def model(self) -> Model:
        """How memory works."""
        return Model(block_of(self.block), self.memory, self.input_place, self.weights)

    @property
    def search(self) -> SearchOptions:
        """How an order is searched."""
        accesses = self.effort * 1_000_000
        return SearchOptions(accesses, accesses, seed=self.seed)
