"""Execution times with MKL's for comparison, for figures of Gleinig et al."""

from collections.abc import Mapping

from tvm_serenity.errors import MissingPartError
from tvm_serenity.papers.record import PaperCell
from tvm_serenity.sparse.network import FFNN

MKL = "mkl"
NO_MKL = "MKL is not installed; run pip install 'tvm-serenity[sparse]'"
MACHINE = "another processor; MKL of today is faster on very sparse layers than MKL 2021.3"


def measured(net: FFNN) -> tuple[float, float | None]:
    """Return microseconds of our execution and of layer-wise MKL (None if MKL is missing)."""
    try:
        from tvm_serenity.sparse.execute.bench import times
    except ImportError as error:
        raise MissingPartError(
            "figures 7 and 8 need TVM, which is not installed; run pip install 'tvm-serenity[run]'"
        ) from error
    found = times(net)
    return found.ours_us, found.baselines.get(MKL)


def speed_ups(nets: Mapping[float, FFNN], stated: Mapping[float, float | None]) -> list[PaperCell]:
    """Return our speed-up over layer-wise MKL for each density, beside the paper's."""
    cells = []
    for density, net in nets.items():
        ours_us, mkl_us = measured(net)
        ratio = None if mkl_us is None else round(mkl_us / ours_us, 2)
        note = NO_MKL if mkl_us is None else MACHINE
        quantity = f"{density:.1%}, speed-up over MKL layer by layer"
        cells.append(PaperCell(quantity, stated[density], ratio, "x", note))
    return cells
