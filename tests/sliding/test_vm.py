"""Windows that move, on the Relax VM: each as the whole network and the file's runtime has it."""

from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import sampled, scaled
from tests.cli.run import answer, serenity
from tests.rows.nets import model, random_module
from tvm_serenity.errors import InputError
from tvm_serenity.rows.limits import Limits


def made_of(module: Any, step: int) -> Any:
    from tvm_serenity.relax.pipeline import Steps, prepared
    from tvm_serenity.relax.sliding import in_steps

    plain = prepared(module, Steps(layout="last"), "llvm").plain
    return in_steps(plain, step, "llvm", Limits(1.0, effort=0.1))


def test_windows_of_networks_drawn_at_random() -> None:
    from tvm_serenity.runtime.stream import run_windows

    ran = 0
    for seed in range(200):
        for step in (1, 3, 2):
            try:
                made = made_of(random_module(seed, bool(seed % 3)), step)
            except InputError:
                continue  # nothing would stay
            found = run_windows(made, seed, 8)
            assert found.differ == 0
            assert len(found.windows) == 8
            ran += 1
            break
        if ran >= scaled(3, 40):
            return
    raise AssertionError(f"{ran} networks alone")


@pytest.mark.parametrize(
    ("name", "step"),
    sampled(
        [
            ("mlperf_tiny/kws_dscnn_int8.tflite", 1),
            ("tflm/micro_speech_quantized.tflite", 2),
            ("tflm/keyword_scrambled_8bit.tflite", 1),
        ],
        1,
    ),
)
def test_windows_are_those_of_the_runtime(name: str, step: int) -> None:
    said = answer("rows", str(model(name)), "--sliding", str(step), "--run", "--time-limit", "5")
    assert said["run"]["windows"] == 50
    assert said["run"]["reference_runtime"].startswith("bit-identical to ")


def test_rows_that_are_lost_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeded faults: what is kept goes in one step early or late, or in another order."""
    from tvm_serenity.frontends.relax import to_relax
    from tvm_serenity.runtime import stream

    made = made_of(to_relax(str(model("mlperf_tiny/kws_dscnn_int8.tflite"))), 1)
    restart = stream.SlidingNetwork.restart

    def broken(change: Any) -> Any:
        def again(network: Any) -> None:
            restart(network)
            network.kept = [change(phases) for phases in network.kept]

        return again

    class Reversed(deque[Any]):
        def append(self, rows: Any) -> None:
            super().append(list(reversed(list(rows))))

    late = broken(lambda phases: deque([*phases, list(phases[0])]))
    turned = broken(lambda phases: Reversed(phases) if len(phases) > 1 else phases)
    for fault in (late, turned):
        monkeypatch.setattr(stream.SlidingNetwork, "restart", fault)
        assert stream.run_windows(made, 0, 4).differ > 0
    monkeypatch.setattr(stream.SlidingNetwork, "restart", restart)
    assert stream.run_windows(made, 0, 4).differ == 0


def test_rows_of_another_size_or_type_are_refused(tmp_path: Path) -> None:
    import tvm

    from tvm_serenity.frontends.relax import to_relax
    from tvm_serenity.runtime.pipeline import serenity_pipeline
    from tvm_serenity.runtime.stream import SlidingNetwork

    made = made_of(to_relax(str(model("tflm/micro_speech_quantized.tflite"))), 2)
    built = tvm.compile(
        made.module, "llvm", relax_pipeline=serenity_pipeline("given", validate=False)
    )
    network = SlidingNetwork(made, built)
    with pytest.raises(InputError, match="a row of 39 int8: rows of the stream are 40 int8"):
        network.feed_row(np.zeros(39, np.int8))
    with pytest.raises(InputError, match="a row of 40 uint8"):
        network.feed_row(np.zeros(40, np.uint8))
    outputs = [network.feed_row(np.zeros(40, np.int8)) for _ in range(52)]
    assert [y for y, found in enumerate(outputs) if found is not None] == [49, 51]
    kws = str(model("mlperf_tiny/kws_dscnn_int8.tflite"))
    found = serenity("rows", kws, "--run")
    assert found.returncode == 2
    assert "--run goes with --sliding" in found.stderr
