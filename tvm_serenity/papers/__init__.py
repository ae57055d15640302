"""The figures and tables of the three papers that the project is based on, with our values.

Each figure or table is one file, ``PAPER_KIND_NUMBER.py``, which declares its ``EXHIBIT``.
"""

from importlib import import_module

from tvm_serenity.errors import InputError
from tvm_serenity.papers.record import KINDS, Budget, Exhibit, Kind, Paper, PaperCell

__all__ = [
    "KINDS",
    "PAPERS",
    "Budget",
    "Exhibit",
    "Kind",
    "Paper",
    "PaperCell",
    "exhibit",
    "paper",
]

PAPERS: dict[str, Paper] = {
    one.name: one
    for one in (
        Paper(
            "serenity",
            "Ordering Chaos: Memory-Aware Scheduling of Irregularly Wired Neural Networks for Edge "
            "Devices",
            "B. H. Ahn, J. Lee, J. M. Lin, H.-P. Cheng, J. Hou, H. Esmaeilzadeh",
            "MLSys 2020",
            figures=(10, 11, 12, 13),
            tables=(1, 2),
        ),
        Paper(
            "liberis-lane",
            "Neural networks on microcontrollers: saving memory at inference via operator "
            "reordering",
            "E. Liberis, N. D. Lane",
            "2019",
            figures=(1, 2, 3),
            tables=(1,),
        ),
        Paper(
            "gleinig",
            "A Theory of I/O-Efficient Sparse Neural Network Inference",
            "N. Gleinig, T. Ben-Nun, T. Hoefler",
            "2023",
            figures=(2, 3, 4, 5, 6, 7, 8),
        ),
    )
}
"""The papers by the name that ``serenity paper`` takes."""


def paper(name: str) -> Paper:
    """Return the paper called ``name``; raise :class:`InputError` if there is none."""
    if name not in PAPERS:
        raise InputError(f"{name}: no such paper; choose one of {', '.join(PAPERS)}")
    return PAPERS[name]


def exhibit(name: str, kind: Kind, number: int) -> Exhibit:
    """Return a figure or table of a paper; raise :class:`InputError` if it is not computed."""
    known = paper(name).numbers(kind)
    if number not in known:
        listed = ", ".join(map(str, known)) or "none"
        raise InputError(
            f"{name}: {kind} {number} is not computed; the {kind}s of this paper are: {listed}"
        )
    module = import_module(f"{__name__}.{name.replace('-', '_')}_{kind}_{number}")
    found: Exhibit = module.EXHIBIT
    return found
