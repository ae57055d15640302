"""Options of ``serenity build`` together, on drawn networks: equal, or refused by name.

More, of fresh seeds: ``python benchmarks/conformance.py --part options``.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.cases import scaled
from tests.conformance.build_options import STRATEGIES, OptionsCase, check
from tests.conformance.builder import Net
from tests.conformance.case import DIFFERENT, EQUAL, REFUSED
from tests.conformance.counts import generate
from tests.conformance.networks.parts import squeezed
from tests.conformance.quantise import dynamic_file, integer_file, ranges
from tests.firmware.projects import needs_host
from tests.quantize.running import REFERENCE
from tvm_serenity import firmware
from tvm_serenity.errors import InputError

ALL_FIELDS = {"--in-place": {"in_place": True}, "--overlap": {"overlap": True}}


def squeeze_and_excite() -> Net:
    net = Net(0)
    x = net.unary("HARD_SWISH", net.conv(net.input(1, 8, 8, 3), 8, 3))
    net.output(net.conv(squeezed(net, net.depthwise(x), 4, "hard"), 4, 1))
    return net


@needs_host
def test_a_kernel_that_overwrites_its_input_may_be_allowed_to_overlap_it() -> None:
    net = squeeze_and_excite()
    case = OptionsCase("blocks", integer_file(net, ranges(net, REFERENCE)), options=ALL_FIELDS)
    assert check(case).status == EQUAL, check(case).reason


@needs_host
@pytest.mark.parametrize("kind", STRATEGIES)
def test_options_drawn_together_are_equal_or_refused_by_name(kind: str) -> None:
    found = generate(STRATEGIES[kind], scaled(2, 150), 3, check)
    wrong = [f"{case.note}: {v.reason}" for case, v in found if v.status == DIFFERENT]
    assert wrong == []
    assert sum(verdict.status == EQUAL for _, verdict in found) > len(found) // 2


@needs_host
def test_a_network_without_rows_is_refused_by_the_options_that_want_them(tmp_path: Path) -> None:
    net = Net(0)
    net.output(net.dense(net.input(1, 12), 4))
    path = tmp_path / "flat.tflite"
    path.write_bytes(integer_file(net, ranges(net, REFERENCE)))
    settings = firmware.Settings(recompute=1.5, rows=2)
    with pytest.raises(InputError, match=r"build without --rows 2, --recompute 1\.5"):
        firmware.build(path, "mps2-an386", settings)
    case = OptionsCase("flat", path.read_bytes(), options={"--rows": {"rows": 2}})
    assert check(case).status == REFUSED


@needs_host
@pytest.mark.parametrize("options", [{"quantized": "off"}, {"dynamic_range": "float"}])
def test_float_activations_are_compared_widely(options: dict[str, Any], tmp_path: Path) -> None:
    """The runtime rounds them to 8 bits: on one input, whose results are no longer its own."""
    net = Net(0)
    net.output(net.dense(net.dense(net.input(1, 12), 8), 4))
    path = tmp_path / "dynamic.tflite"
    path.write_bytes(dynamic_file(net, by_channel=False, bits=8))
    found = firmware.build(path, "mps2-an386", firmware.Settings(**options))
    assert found.facts["check"]["loose"] == "computed in float"
