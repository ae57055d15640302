"""SerenitySchedule: put the operators of every dataflow block into the order of least peak."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph
from tvm_serenity.offchip import traffic_order
from tvm_serenity.relax.lower import functions_of, lowered
from tvm_serenity.relax.read import Region, read_region, weights_of
from tvm_serenity.schedule import Options, schedule


@tvm.transform.module_pass(opt_level=0, name="SerenitySchedule")
@dataclass
class SerenitySchedule:
    """Order the operators of each dataflow block for the least peak memory.

    1. A module that still holds high-level operators is lowered and fused first, as
       ``tvm.compile`` would for ``target`` (default: the target in scope, else llvm): fusion
       decides what is an operator and what is materialised.
    2. Reshapes become views.
    3. Each dataflow block of each function is read as a graph (kernel workspace included; inputs
       and outputs of the function belong to its caller), ordered by ``method`` under
       ``options``, and written back. The order of a dataflow block's bindings is the order of
       execution.

    4. ``objective="traffic"`` orders for the least traffic with off-chip memory under Belady's
       replacement in ``on_chip_bytes`` instead (``docs/offchip.md``); inputs and outputs of the
       function are off-chip then, and ``method`` does not matter.

    The set of bindings and every kernel stay the same, so outputs are bit-identical. Symbolic
    shapes and control flow are refused with :class:`UnsupportedError`, which names the binding.
    """

    method: str = "auto"
    target: Any = None
    options: Options = field(default_factory=Options)
    objective: str = "peak"
    on_chip_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.objective not in ("peak", "traffic"):
            raise InputError(f"objective={self.objective!r}: there are 'peak' and 'traffic'")
        if (self.objective == "traffic") != (self.on_chip_bytes is not None):
            raise InputError("on_chip_bytes goes with objective='traffic', and is needed there")

    def transform_module(self, mod: Any, _context: Any) -> Any:
        """Return the module in its new order."""

        def best(graph: Graph) -> Sequence[int]:
            if self.on_chip_bytes is not None:
                return traffic_order(graph, self.on_chip_bytes).order
            return schedule(graph, self.method, self.options).order

        return order_module(lowered(mod, self.target), best)


def order_module(mod: Any, order_of: Callable[[Graph], Sequence[int]]) -> Any:
    """Return lowered ``mod`` with each dataflow block in the order ``order_of`` its graph."""
    result = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    for name, function in functions_of(mod):
        blocks = []
        for index, block in enumerate(function.body.blocks):
            if isinstance(block, relax.DataflowBlock):
                region = _block_region(mod, function, index)
                block = relax.DataflowBlock(region.arrange(order_of(region.graph)))
            blocks.append(block)
        body = relax.SeqExpr(blocks, function.body.body)
        result[name] = compat.with_body(function, body)
    return result


def _block_region(mod: Any, function: Any, index: int) -> Region:
    """Read block ``index`` of ``function``: what comes before it makes its inputs."""
    blocks = function.body.blocks
    before = [b.var for block in blocks[:index] for b in block.bindings]
    bindings = list(blocks[index].bindings)
    results = [b.var for b in bindings if not isinstance(b.var, relax.DataflowVar)]
    return read_region(
        mod, [*function.params, *before], bindings, results, weights=weights_of(function)
    )
