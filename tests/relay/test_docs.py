"""The code of docs/relay.md, block by block."""

from pathlib import Path

import pytest

pytest.importorskip("tvm.relay", reason="needs a TVM with Relay: make relay-test")

from tests.docs.pages import blocks
from tests.docs.running import run_python

CODE = [block.text for block in blocks("docs/relay.md") if block.language == "python"]


@pytest.mark.parametrize("index", range(len(CODE)))
def test_block_runs(index: int, tmp_path: Path) -> None:
    run_python(CODE[index], tmp_path)
