"""A step of a moving window is priced: the call with the last of its rows."""

from pathlib import Path

import pytest

from tests.conformance.builder import Net
from tests.conformance.quantise import integer_file, ranges
from tests.firmware.projects import needs_board
from tests.quantize.running import REFERENCE
from tvm_serenity import firmware
from tvm_serenity.firmware.board import latency as priced
from tvm_serenity.firmware.result import load

pytest.importorskip("unicorn")
pytest.importorskip("capstone")
pytest.importorskip("tvm_serenity._cycles")


@needs_board
def test_a_step_is_priced_with_all_its_layers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = Net(3)
    x = net.conv(net.input(1, 24, 1, 4), 8, (5, 1), 1, "VALID", "RELU")
    x = net.conv(x, 8, (3, 1), 1, "VALID", "RELU")
    net.output(net.dense(net.mean(x), 4))
    (tmp_path / "net.tflite").write_bytes(integer_file(net, ranges(net, REFERENCE)))
    settings = firmware.Settings(name="net", output=tmp_path / "made", sliding=2, check=False)
    firmware.build(tmp_path / "net.tflite", "nucleo-l4r5zi", settings)
    project = load(tmp_path / "made")
    found = priced.latency(project)
    assert found.function == "net_feed_row"
    called = {part.name for part in found.operators}
    assert called == {str(o["name"]) for o in project.metadata["operators"]}
    # A seeded fault: the first row of a step is measured, which is only stored.
    monkeypatch.setattr(priced, "_feed", lambda _project, _machine: None)
    monkeypatch.setattr("tvm_serenity.firmware.board.latency.cache.opened", lambda: None)
    assert not priced.latency(project).operators
