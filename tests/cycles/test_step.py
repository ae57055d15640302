"""A step of a moving window is priced: the call with the last of its rows."""

from pathlib import Path

import pytest

from tests.conformance.builder import Net
from tests.conformance.quantise import integer_file, ranges
from tests.firmware.projects import needs_board
from tests.quantize.running import REFERENCE
from tvm_serenity import firmware
from tvm_serenity.boards import board
from tvm_serenity.commands.latency import InstructionCount, duty_cycle
from tvm_serenity.errors import InputError
from tvm_serenity.firmware.board import latency as priced
from tvm_serenity.firmware.result import load


def test_a_count_without_a_time_has_no_share() -> None:
    count = InstructionCount(board("mps3-an547"), 1_000, None)
    with pytest.raises(InputError, match="instructions alone"):
        duty_cycle(count, 20)


@needs_board
def test_a_step_is_priced_with_all_its_layers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for needed in ("unicorn", "capstone", "tvm_serenity._cycles"):
        pytest.importorskip(needed)
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
    duty = duty_cycle(found, 0.1)
    assert duty.share == tuple(ms / 0.1 for ms in found.milliseconds)
    assert duty.expected == tuple(ms / 0.1 for ms in found.expected_ms)
    assert duty.expected[0] < duty.share[0] < duty.share[1] < duty.expected[1]
    assert "falls behind" in duty_cycle(found, found.expected_ms[1] * 0.99).text()
    assert "falls behind" not in duty_cycle(found, found.expected_ms[1] * 1.01).text()
    called = {part.name for part in found.operators}
    assert called == {str(o["name"]) for o in project.metadata["operators"]}
    # A seeded fault: the first row of a step is measured, which is only stored.
    monkeypatch.setattr(priced, "_feed", lambda _project, _machine: None)
    monkeypatch.setattr("tvm_serenity.firmware.board.latency.cache.opened", lambda: None)
    assert not priced.latency(project).operators
