"""Networks with chains of layers that are computed together in column tiles."""

from collections.abc import Sequence
from dataclasses import replace

from tvm_serenity.firmware.kernels.record import NotCovered
from tvm_serenity.firmware.select.chains import Chained
from tvm_serenity.firmware.select.lowered import LoweredLayer
from tvm_serenity.firmware.select.rows import RowKernels
from tvm_serenity.relax.row_chains import chains
from tvm_serenity.relax.rows_read import LayerKernel
from tvm_serenity.rows.tiles import Chain, Tiled, tiled


def tileable(kernels: RowKernels) -> tuple[Chain, ...]:
    """Return the chains of a network that can be composed of the library's row kernels."""
    found = []
    for chain in chains(kernels.rows):
        try:
            for tile in {1, chain.columns.out_width}:
                Chained(kernels, Tiled(chain, tile)).code()
        except NotCovered:
            continue
        found.append(chain)
    return tuple(found)


def in_tiles(kernels: RowKernels, tiles: Sequence[Tiled]) -> RowKernels:
    """Return the kernels of a network whose chains run in ``tiles``.

    Raises :class:`NotCovered` if a part of a chain has no library kernel.
    """
    if not tiles:
        return kernels
    network, came_from = tiled(kernels.network, tiles)
    known = {one.chain.layers[-1]: one for one in tiles}
    layers: list[LayerKernel | None] = []
    code: list[LoweredLayer | None] = []
    joined: dict[int, tuple[int, ...]] = {}
    for new, old in enumerate(came_from):
        if old not in known:
            layers.append(kernels.rows.kernels[old])
            code.append(kernels.code[old])
            continue
        made = Chained(kernels, known[old])
        layers.append(made.layer())
        code.append(made.code())
        joined[new] = made.between
    rows = replace(kernels.rows, network=network, kernels=tuple(layers))
    return replace(kernels, rows=rows, network=network, code=tuple(code), joined=joined)
