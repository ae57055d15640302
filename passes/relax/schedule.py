"""SerenitySchedule: put the operators of every dataflow block into the order of least peak."""

from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import relax

from tvm_serenity.passes import _compat
from tvm_serenity.passes.relax.read import Region, read_region, weights_of
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

    The set of bindings and every kernel stay the same, so outputs are bit-identical. Symbolic
    shapes and control flow are refused with :class:`UnsupportedError`, which names the binding.
    """

    method: str = "auto"
    target: Any = None
    options: Options = field(default_factory=Options)

    def transform_module(self, mod: Any, _context: Any) -> Any:
        """Return the module in its new order."""
        return order_module(lowered(mod, self.target), self.method, self.options)


def lowered(mod: Any, target: Any = None) -> Any:
    """Return ``mod`` as fused kernels in dataflow form, with reshapes as views."""
    target = _compat.current_target() if target is None else tvm.target.Target(target)
    if not all(_is_lowered(f) for _, f in _functions(mod)):
        with target:
            mod = tvm.transform.Sequential(
                [relax.transform.ConvertToDataflow(), _compat.lower_and_fuse(target)]
            )(mod)
    return relax.transform.RewriteDataflowReshape()(mod)


def order_module(mod: Any, method: str, options: Options) -> Any:
    """Return lowered ``mod`` with the operators of each dataflow block ordered by ``method``."""
    result = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    for name, function in _functions(mod):
        blocks = []
        for index, block in enumerate(function.body.blocks):
            if isinstance(block, relax.DataflowBlock):
                region = _block_region(mod, function, index)
                found = schedule(region.graph, method, options)
                block = relax.DataflowBlock(region.arrange(found.order))
            blocks.append(block)
        body = relax.SeqExpr(blocks, function.body.body)
        result[name] = _compat.with_body(function, body)
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


def _functions(mod: Any) -> list[tuple[Any, Any]]:
    """The Relax functions of a module, in the order of their names."""
    found = [(g, f) for g, f in mod.functions.items() if isinstance(f, relax.Function)]
    return sorted(found, key=lambda item: item[0].name_hint)


def _is_lowered(function: Any) -> bool:
    """Whether a function holds no operator that LegalizeOps would turn into a kernel."""
    for block in function.body.blocks:
        for binding in block.bindings:
            if _compat.is_call(binding.value) and _compat.is_high_level(binding.value):
                return False
    return True
