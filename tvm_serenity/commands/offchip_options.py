"""The options of ``offchip``."""

from dataclasses import dataclass

from tvm_serenity.errors import InputError
from tvm_serenity.offchip import (
    ORDERS,
    InputPlace,
    Memory,
    Model,
    SearchOptions,
    Weights,
    capacities_of,
)
from tvm_serenity.offchip.energy import REGIONS
from tvm_serenity.offchip.policies import NAMES
from tvm_serenity.options.memory import ALIGN
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

TENSOR = "tensor"
TRAFFIC = "traffic"
_ONE = (Need("order_for", "it applies to a single order"),)
_SWEEP = (Conflict("order_for", "it applies to a sweep"),)


def block_of(text: str) -> int | None:
    """Return the size in bytes of a transferred block; None for complete tensors."""
    try:
        return None if text == TENSOR else size_bytes(text, least=1)
    except InputError as error:
        raise InputError(f"--block: {error}") from None


def sizes_of(text: str) -> tuple[int, ...]:
    """Return the capacities in bytes of a list of sizes and ranges."""
    try:
        return tuple(capacities_of(text))
    except InputError as error:
        raise InputError(f"--capacities: {error}") from None


def names_of(text: str) -> tuple[str, ...]:
    """Return the distinct names of a comma-separated list."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


@dataclass(frozen=True, kw_only=True)
class OffchipOptions(ReadOptions, TimeLimit, Sweeping):
    """The options of ``offchip``.

    * ``capacities``: sizes of on-chip memory. ``orders``: names in ``ORDERS``. ``policy``: names in
      ``NAMES`` of ``offchip.policies``. ``block``: size of a transferred block, or unsplit tensors.
      ``memory``: a write-back cache, or a software-managed scratchpad. ``input_place``: initial
      place of the inputs. ``weights``: whether weights cause traffic.
    * ``align``: unsplit tensors occupy multiples of this. ``plan``: the file of a
      transfer plan: the loads and stores of one point, with addresses.
    * ``energy``: a region of ``REGIONS``, or FILE.toml:NAME. ``plot``: the file of a figure like
      SERENITY's Figure 11.
    * ``order_for``: "traffic" searches for an order of one model at ``capacity_bytes`` and writes
      it to ``output``. ``effort``: millions of simulated accesses. ``seed``: seed of the search.
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
            help=f"Orders: {', '.join(ORDERS)}.",
            group=HelpGroup.MEMORY,
            metavar="NAMES",
            conflicts=_SWEEP,
        ),
    )
    policy: str = option(
        "belady",
        Option(
            flag="--policy",
            help=f"Policies: {', '.join(NAMES)}.",
            group=HelpGroup.MEMORY,
            metavar="NAMES",
            conflicts=_SWEEP,
        ),
    )
    block: str = option(
        "256",
        Option(
            flag="--block",
            help=f"Bytes of a transferred block, or {TENSOR!r} (scratchpad).",
            group=HelpGroup.MEMORY,
            metavar="SIZE",
            check=block_of,
        ),
    )
    memory: Memory = option(
        Memory.CACHE,
        Option(flag="--memory", help="Write-back cache, or scratchpad.", group=HelpGroup.MEMORY),
    )
    input_place: InputPlace = option(
        InputPlace.OFF_CHIP,
        Option(flag="--input-place", help="Initial place of the inputs.", group=HelpGroup.MEMORY),
    )
    weights: Weights = option(
        Weights.NONE,
        Option(
            flag="--weights",
            help="Count weights, which operators stream.",
            group=HelpGroup.MEMORY,
        ),
    )
    align: int = option(
        1, differing(ALIGN, help="Bytes that unsplit tensors are aligned to.", least=1)
    )
    plan: str | None = option(
        None,
        Option(
            flag="--plan",
            help="Write the loads and stores of one model, capacity, order and policy, with "
            "addresses, as a file that serenity check verifies.",
            metavar="FILE",
            conflicts=_SWEEP,
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
            conflicts=(*_SWEEP, Conflict("time_limit_s", "a time limit holds on one machine only")),
        ),
    )
    order_for: str | None = option(
        None,
        Option(
            flag="--order-for",
            help="Search for an order of one MODEL at one --capacity.",
            group=HelpGroup.MEMORY,
            choices=(TRAFFIC,),
            needs=(Need("capacity_bytes", "the order depends on the capacity"),),
        ),
    )
    capacity_bytes: int | None = option(
        None,
        Option(
            flag="--capacity",
            help="Capacity of on-chip memory for --order-for.",
            group=HelpGroup.MEMORY,
            unit=BYTES,
            least=1,
            needs=_ONE,
        ),
    )
    output: str | None = option(
        None, differing(OUTPUT, help="With --order-for: the reordered model.", needs=_ONE)
    )
    effort: int = option(
        60,
        Option(
            flag="--effort",
            help="Simulated accesses of the order search, in millions.",
            group=HelpGroup.SPEED,
            least=0,
        ),
    )
    seed: int = option(
        0, Option(flag="--seed", help="Seed of the order search.", group=HelpGroup.SPEED, least=0)
    )

    @property
    def model(self) -> Model:
        """The memory model of the simulation."""
        return Model(
            block_of(self.block),
            self.memory,
            self.input_place,
            self.weights,
            self.align,
        )

    @property
    def search(self) -> SearchOptions:
        """The options of the order search."""
        accesses = self.effort * 1_000_000
        return SearchOptions(accesses, accesses, seed=self.seed)
