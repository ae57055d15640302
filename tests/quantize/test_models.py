"""The shared quantised models in integers: outputs, bytes of arena and weights, no allocation."""

from pathlib import Path

import pytest

from tests.cases import sampled
from tests.quantize.models import TABLE
from tests.quantize.running import assert_every_result_exact, assert_exact, with_all_results
from tvm_serenity.schedule import schedule

tvm = pytest.importorskip("tvm")

from tvm_serenity.frontends.relax import to_relax  # noqa: E402
from tvm_serenity.kernels.tile import HOST  # noqa: E402
from tvm_serenity.relax.lean_kernels import lean_module  # noqa: E402
from tvm_serenity.relax.plan_memory import plan_graph  # noqa: E402
from tvm_serenity.relax.quantize import kept_float, quantized_module  # noqa: E402
from tvm_serenity.relax.read import read_function  # noqa: E402
from tvm_serenity.runtime.weights import file_weight_bytes, weight_bytes  # noqa: E402

ARENA = {
    "kws_dscnn_int8": 16_000,
    "ic_resnet8_int8": 49_152,
    "ad01_int8": 768,
    "person_detect": 55_296,
    "micro_speech_quantized": 8_000,
    "vww_mobilenetv1_96_int8": 55_296,
    "swiftnet_vww_224_uint8": 200_704,
}
"""Bytes at most, inputs and outputs in the arena too; SwiftNet's input (150,528) apart."""
SATURATED = ("swiftnet_vww_224_uint8", "keyword_scrambled_8bit")
"""Models whose outputs are the same for all made-up inputs: every kernel is compared below."""
LARGE = ("mcunet_vww_int8", "mltk_keyword_spotting_on_off_v3")
FILLS = (0, 1, "min", "max", "zero")
SOFTMAX_TABLE = 1024
"""Bytes of exponentials, which no file holds."""


@pytest.mark.parametrize("name", sampled(TABLE, 2))
def test_a_model_runs_in_integers_as_the_reference_does(name: str, shared: Path) -> None:
    path = shared / "models" / name
    module = quantized_module(to_relax(path))
    assert kept_float(module) == ()
    stem = path.stem
    apart = stem.startswith("swiftnet")
    lean = lean_module(module, tvm.target.Target("llvm"), HOST)
    graph = read_function(lean, external_inputs=apart, external_outputs=apart).graph
    assert all(op.workspace_bytes == 0 for op in graph.ops)
    found = schedule(graph)
    _, placed = plan_graph(graph, order=found.order)
    if stem in ARENA:
        assert found.lower_bound_bytes <= placed.arena_bytes <= ARENA[stem]
    assert weight_bytes(module) - SOFTMAX_TABLE <= 1.05 * sum(file_weight_bytes(path))
    varied = stem not in SATURATED
    fills = FILLS if varied and stem not in LARGE else (0, "max")
    assert_exact(path.read_bytes(), module, fills=fills, varied=varied)


def test_every_kernel_makes_a_tensor_of_the_file(shared: Path) -> None:
    path = shared / "models" / "swiftnet/swiftnet_vww_224_uint8.tflite"
    module = with_all_results(quantized_module(to_relax(path, fold_concat=False)))
    assert assert_every_result_exact(path.read_bytes(), module, 0) == 65


def test_the_states_of_filters_are_those_of_the_file(shared: Path) -> None:
    path = shared / "models" / "tflm/keyword_scrambled.tflite"
    module = quantized_module(to_relax(path))
    assert assert_every_result_exact(path.read_bytes(), module, 0) == 1 + 7
