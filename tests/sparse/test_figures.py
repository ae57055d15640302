"""Figures 2 to 8 on small networks, their numbers and their files."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tvm_serenity.cli import app
from tvm_serenity.cli.commands import register
from tvm_serenity.errors import InputError
from tvm_serenity.sparse.figures import FIGURES, QUICK, draw

register()

TINY = replace(
    QUICK,
    seeds=1,
    iterations=50,
    seconds=0.1,
    densities=(0.1,),
    widths=(20,),
    depths=(2,),
    memories=(8,),
    small_memories=(8,),
    shape_densities=(0.2,),
)


@pytest.mark.parametrize("number", FIGURES)
def test_a_figure_shows_ours_beside_the_papers(number: int, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plate = FIGURES[number](TINY if number < 7 else replace(TINY, widths=(), depths=()))
    assert plate.number == number
    for panel in [panel for panel in plate.panels if panel.curves]:
        names = {name.split(",")[0] for name in panel.curves}
        assert {"paper", "ours"} <= names
        for points in panel.curves.values():
            assert all(0 < p.low <= p.median <= p.high for p in points)
        if {"start", "bound"} <= names:
            for index, ours in enumerate(panel.curves["ours"]):
                assert panel.curves["bound"][index].median <= ours.median
                assert ours.median <= panel.curves["start"][index].median
    path = tmp_path / "figure.svg"
    draw(plate, path)
    assert path.read_text().lstrip().startswith("<?xml")


def test_the_command_writes_figures_and_numbers(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder = tmp_path / "figures"
    app(
        ["sparse", "figures", "-o", str(folder), "--quick", "--only", "5", "--seeds", "1"],
        standalone_mode=False,
    )
    assert sorted(path.name for path in folder.iterdir()) == ["figure5.json", "figure5.svg"]
    data = json.loads((folder / "figure5.json").read_text())
    assert data["panels"][0]["curves"]["ours"]


@pytest.mark.parametrize(
    ("options", "message"),
    [("--only 9", "numbers from 2 to 8"), ("--format gif", ".svg, .png, .pdf")],
)
def test_bad_options(options: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        app(["sparse", "figures", "-o", str(tmp_path), *options.split()], standalone_mode=False)
