"""The tables that docs/latency.md shows can be read."""

from pathlib import Path

from tests.cycles.programs import BOARD
from tests.docs.pages import blocks
from tvm_serenity.boards import board
from tvm_serenity.cycles.board import board_timing
from tvm_serenity.cycles.core import core_timing


def test_the_board_and_the_core_of_the_page(tmp_path: Path) -> None:
    on_board, core = (b.text for b in blocks("docs/latency.md") if b.language == "toml")
    path = tmp_path / "mine.toml"
    path.write_text(BOARD.partition("[timing]")[0].replace("{core}", "cortex-m4") + on_board)
    timing = board_timing(board(str(path)))
    assert timing is not None
    assert timing.memories[0].wait_states(64) == 1
    (tmp_path / "my-core.toml").write_text(core)
    assert core_timing("my-core.toml", tmp_path).instructions["ldrb"].cycles == 1
