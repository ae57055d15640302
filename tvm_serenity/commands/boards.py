"""``boards``: list the known boards."""

from tvm_serenity.boards import Board, board, names


def boards(board_name: str | None = None) -> list[Board]:
    """Return all known boards, or only the board of ``board_name`` (a name or a ``.toml`` file)."""
    return [board(name) for name in (names() if board_name is None else [board_name])]
