"""``--opaque``: operators that the user computes, planned around and called as C functions."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.cases import only_exhaustive
from tests.cli.run import answer, serenity
from tests.conformance.writer import Node, T, tflite
from tests.firmware.projects import model, needs_board
from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.firmware import Settings, build
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.firmware.result import Project
from tvm_serenity.frontends import load
from tvm_serenity.frontends.opaque import laid
from tvm_serenity.memory import peak_bytes
from tvm_serenity.options.model import workspaces_of

VELA = "wild/person_detect_vela.tflite"
MIXER = """\
#include "net_opaque.h"

void serenity_opaque_mixer(const serenity_opaque *call)
{
    const int8_t *const x = call->inputs[0], *const bias = call->inputs[2];
    int8_t *const y = call->outputs[0];
    int16_t *const z = call->outputs[call->output_count - 1];
    uint8_t *const scratch = call->workspace;
    for (uint32_t i = 0; i < call->output_bytes[0]; ++i) {
        scratch[i] = (uint8_t)(x[i] + bias[i % call->input_bytes[2]]);
    }
    for (uint32_t i = 0; i < call->output_bytes[0]; ++i) {
        y[i] = (int8_t)scratch[call->output_bytes[0] - 1 - i];
    }
    if (call->output_count == 1) {
        return;
    }
    z[0] = (int16_t)(call->input_count + (call->inputs[1] == 0 ? 10u : 0u));
    z[1] = (int16_t)call->options_bytes;
    z[2] = (int16_t)call->workspace_bytes;
    for (uint32_t i = 3; i < call->output_bytes[1] / 2; ++i) {
        z[i] = (int16_t)i;
    }
}
"""
SIDE, CHANNELS = 8, 4
BIAS = np.array([3, -5, 7, 1], np.int8)


def mixed(folder: Path, results: int = 2) -> Path:
    """A pool, a custom operator with an input left out and two results, and what reads one."""
    image = (1, SIDE, SIDE, CHANNELS)
    tensors = [
        T(image, "int8", 0.1, 3),
        T(image, "int8", 0.1, 3),
        T((4,), "int8", data=BIAS),
        T(image, "int8", 0.1, 3),
        T((1, SIDE, 1, 1), "int16"),
        T(image, "int8", 0.1, 3),
    ]
    pool = {"filterWidth": 3, "filterHeight": 3, "strideW": 1, "strideH": 1}
    nodes = [
        Node("MAX_POOL_2D", [0], [1], pool),
        Node("mixer", [1, -1, 2], [3, 4][:results], {"depth": 3}),
        Node("RELU", [3], [5]),
    ]
    path = folder / "net.tflite"
    outputs = [5, 1, 4][: results + 1]
    path.write_bytes(tflite(tensors, nodes, [0], outputs))
    return path


@needs_board
@pytest.mark.parametrize(("rows", "results"), [("off", 2), only_exhaustive((4, 1)), (4, 2)])
def test_the_users_function_is_called(tmp_path: Path, rows: str | int, results: int) -> None:
    path, where = mixed(tmp_path, results), tmp_path / "net"
    settings = Settings(opaque={"mixer": 256}, output=where, rows=rows)
    found = build(str(path), "mps2-an386", settings)
    assert found.facts["check"]["opaque"] == ["mixer"]
    assert not (where / "build").exists()  # nothing stays that was linked with a stub
    done = subprocess.run(["make", "-C", where], capture_output=True, text=True, check=False)
    assert "undefined reference to `serenity_opaque_mixer'" in done.stderr
    (where / "net_opaque.c").write_text(MIXER)
    seen = report(found)
    assert seen["accepted"]
    assert seen["unknown_tensors"] == results + (1 if rows == "off" else SIDE)
    assert seen["qemu"]["tensors"] == (1 if rows == "off" else SIDE)
    made, pooled, *more = _outputs(found)
    want = (pooled.reshape(-1, CHANNELS) + BIAS).reshape(-1)[::-1]
    assert np.array_equal(made.reshape(-1), np.maximum(want, 3))
    for about in more:
        assert about[0] == 13  # three inputs, one left out
        assert about[1] > len("depth")
        assert about[2] == 256


def _outputs(found: Project) -> list[np.ndarray]:
    from tvm_serenity.firmware.check.verify import run_qemu

    ran = run_qemu(found, found.reference_inputs(), traced=False)
    return [np.frombuffer(d, o["dtype"]) for d, o in zip(ran.outputs, found.outputs, strict=True)]


@needs_board
def test_scratch_of_a_compiler_is_workspace(tmp_path: Path) -> None:
    path = model(VELA)
    plain = load(path, opaque={"ethos-u": 4096})
    assert peak_bytes(plain.graph) == 96 * 96 + 74464 + 4096 + 2  # both scratches at one place
    found = build(str(path), "mps2-an386", Settings(opaque={"ethos-u": 4096}, check=False))
    assert "serenity_opaque_ethos_u" in found.files["person_detect_vela_opaque.h"].decode()


def test_unnamed_it_is_refused_by_name_with_what_helps(tmp_path: Path) -> None:
    for words in (["schedule"], ["compile"], ["build", "--board", "mps2-an386", "-o", tmp_path]):
        done = serenity(words[0], model(VELA), *words[1:])
        assert done.returncode == 2
        assert "operator ethos-u " in done.stderr
        assert "--opaque ethos-u=SIZE" in done.stderr


def test_names_that_are_not_there(tmp_path: Path) -> None:
    path = mixed(tmp_path)
    with pytest.raises(InputError, match=r"--opaque mixr: .* custom operators are: mixer"):
        load(path, opaque={"mixr": 1})
    with pytest.raises(InputError, match="given twice"):
        workspaces_of(["a=1", "a=2"])
    for wrong in ("a", "=3", "a=x"):
        with pytest.raises(InputError):
            workspaces_of([wrong])
    assert workspaces_of(["a=b=1K", "c=0"]) == {"a=b": 1024, "c": 0}


def test_nothing_else_runs_a_stand_in(tmp_path: Path) -> None:
    from tvm_serenity.frontends.relax import to_relax

    with pytest.raises(UnsupportedError, match=r"operator mixer .* it is opaque"):
        to_relax(load(mixed(tmp_path), opaque={"mixer": 0}))


def test_scratch_lies_as_the_files_plan_says() -> None:
    assert laid([100, 50], [-1, -1]) == ((0, 112), 176)
    assert laid([100, 50, 8], [32, 48, -1]) == ((0, 16, 112), 128)
    assert laid([], []) == ((), 0)


def test_schedule_counts_the_workspace(tmp_path: Path) -> None:
    path = mixed(tmp_path)
    said = [answer("schedule", path, *more) for more in ((), ("--opaque", "mixer=1K"))]
    peaks = [found["schedule"]["peak_bytes"] for found in said]
    image = SIDE * SIDE * CHANNELS
    assert peaks == [3 * image + 2 * SIDE, 2 * image + 2 * SIDE + 1024]
