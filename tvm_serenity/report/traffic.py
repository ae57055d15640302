"""The off-chip traffic in the report: power-of-two capacities around the peak, Belady's MIN."""

from tvm_serenity.offchip import Model, Sweep

BLOCK_BYTES = 256
SMALL_BLOCK_BYTES = 16
_SMALL_PEAK_BYTES = 32 * 1024
_OCTAVES = 5


def settings_for(peak_bytes: int) -> Sweep:
    """Return the sweep for a network, from 1/32 of its best peak to the peak.

    It simulates the given and the best order.
    """
    block = BLOCK_BYTES if peak_bytes >= _SMALL_PEAK_BYTES else SMALL_BLOCK_BYTES
    last = max(peak_bytes - 1, block).bit_length()
    first = max(last - _OCTAVES, block.bit_length())
    capacities = tuple(2**n for n in range(first, last + 1))
    return Sweep(capacities, ("given", "serenity"), ("belady",), Model(block_bytes=block))
