"""The lower bound on off-chip traffic that holds for every order and every policy."""

from math import inf

from tvm_serenity.offchip.model import Memory
from tvm_serenity.offchip.network import network_of
from tvm_serenity.offchip.policies import native
from tvm_serenity.offchip.storages import Storages


def forced_bytes(storages: Storages, capacity_bytes: int, seconds: float = inf) -> int:
    """Return the bytes beyond compulsory traffic that the capacity forces on every order.

    It is 0 without the native core. Raises :class:`TimeoutError` after ``seconds``.
    """
    if native is None:
        return 0
    model, usable = storages.model, capacity_bytes
    if model.memory is Memory.CACHE and model.block_bytes is not None:
        usable -= usable % model.block_bytes
    return int(network_of(storages).core.forced(usable, seconds))
