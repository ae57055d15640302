"""The page of the three papers: every figure and table that is computed here, ours beside theirs.

    python benchmarks/papers.py [--only NAME ...] [--seeds N] [--seconds S] > docs/results/papers.md

Prints the page. ``--only``: some of the papers, or exhibits like ``gleinig-figure-3``.
"""

import argparse
import sys
from collections.abc import Iterator

from tvm_serenity.cli.paper import value_text
from tvm_serenity.errors import MissingPartError
from tvm_serenity.papers import KINDS, PAPERS, Budget, PaperCell, exhibit

HEAD = """# Results: the papers' figures and tables

For readers of the three papers: every value that their text and tables state, beside ours.
`python benchmarks/papers.py` makes this page; `serenity paper NAME --figure N` makes one table.

A dash in the column of the paper is a bar or a point that the paper prints without a number; a dash
in ours is a value that cannot be computed here. Times are of the machine that made this page, two
shared cores.
"""


def row(cell: PaperCell) -> str:
    difference = "" if cell.difference is None else f"{cell.difference:+.1%}"
    paper, ours = value_text(cell.paper, cell.unit), value_text(cell.ours, cell.unit)
    return f"| {cell.quantity} | {paper} | {ours} | {difference} | {cell.note} |"


def page(only: list[str], budget: Budget) -> Iterator[str]:
    yield HEAD
    for paper in PAPERS.values():
        yield f"\n## {paper.title}\n\n{paper.authors}, {paper.venue}.\n"
        for kind in KINDS:
            for number in paper.numbers(kind):
                name = f"{paper.name}-{kind}-{number}"
                if only and not {name, paper.name} & set(only):
                    continue
                shown = exhibit(paper.name, kind, number)
                yield f"\n### {shown.name.capitalize()}: {shown.title}\n"
                yield f"\n`serenity paper {paper.name} --{kind} {number}`. {shown.setting}\n"
                try:
                    cells = shown.compute(budget)
                except MissingPartError as error:
                    print(f"{name}: {error}", file=sys.stderr)
                    continue
                yield "\n| quantity | paper | ours | difference | note |\n|---|---|---|---|---|\n"
                yield "\n".join(map(row, cells)) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--seeds", type=int, default=Budget().seeds)
    parser.add_argument("--seconds", type=float, default=Budget().seconds)
    given = parser.parse_args()
    for part in page(given.only, Budget(given.seeds, given.seconds)):
        print(part, end="", flush=True)


if __name__ == "__main__":
    main()
