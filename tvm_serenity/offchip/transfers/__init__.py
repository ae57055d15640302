"""Transfer plans: the loads and stores that a policy decides, as a program with addresses.

``transfer_plan`` makes one for an order and a capacity, ``certificate`` writes it as JSON, and
``check_transfers`` replays it without code of the search.
"""

from tvm_serenity.offchip.transfers.check import FORMAT, ConfirmedTransfers, check_transfers
from tvm_serenity.offchip.transfers.plan import (
    Compute,
    Copy,
    Discard,
    Relocate,
    SlowAccess,
    TransferPlan,
    certificate,
)
from tvm_serenity.offchip.transfers.solve import transfer_plan

__all__ = [
    "FORMAT",
    "Compute",
    "ConfirmedTransfers",
    "Copy",
    "Discard",
    "Relocate",
    "SlowAccess",
    "TransferPlan",
    "certificate",
    "check_transfers",
    "transfer_plan",
]
