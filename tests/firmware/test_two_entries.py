"""Two signatures of a file in one program, whose projects share an arena that the caller passes."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.conformance.writer import Node, Subgraph, T, tflite
from tests.firmware.projects import needs_host
from tvm_serenity import firmware
from tvm_serenity.firmware import Settings
from tvm_serenity.firmware.blob.check import loaded
from tvm_serenity.firmware.blob.kernel_set import read_set

PROGRAM = """
#include <stdio.h>
#include "decode_model.h"
#include "encode_model.h"
#define MOST(a, b) ((a) > (b) ? (a) : (b))
static _Alignas(MOST(ENCODE_ARENA_ALIGNMENT, DECODE_ARENA_ALIGNMENT))
    uint8_t arena[MOST(ENCODE_ARENA_BYTES, DECODE_ARENA_BYTES)];
int main(void)
{
    float x[8], y[8];
    const encode_arenas first = {arena};
    const decode_arenas second = {arena};
    for (int i = 0; i < 8; i++) {
        x[i] = (float)(i - 4);
    }
    if (encode_run(&first, &(encode_inputs){x}, &(encode_outputs){y}) != 0 ||
        decode_run(&second, &(decode_inputs){y}, &(decode_outputs){x}) != 0) {
        return 1;
    }
    for (int i = 0; i < 8; i++) {
        printf("%g ", (double)x[i]);
    }
    return 0;
}
"""


WEIGHTS = np.random.default_rng(0).integers(-2, 3, (8, 8)).astype(np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with the signatures encode, a ReLU, and decode, a dense layer."""
    stored = T((8, 8), "float32", data=WEIGHTS, name="w")
    ends = [T((1, 8), "float32", name=name) for name in ("x", "y")]
    dense = [Node("FULLY_CONNECTED", [0, 2, -1], [1])]
    decode = Subgraph([*ends, stored], dense, [0], [1], "decode")
    made = tmp_path / "two.tflite"
    made.write_bytes(tflite(ends, [Node("RELU", [0], [1])], [0], [1], [decode], "encode"))
    return made


@needs_host
def test_both_are_blobs_of_one_kernel_set(path: Path, tmp_path: Path) -> None:
    images = []
    for name in ("encode", "decode"):
        later = name == "decode"
        settings = Settings(
            name=name,
            signature=name,
            format="blob",
            output=tmp_path / name,
            kernel_set=tmp_path / "encode" if later else None,
            extend=later,
        )
        images.append(firmware.build(path, "mps2-an386", settings).files[f"{name}.blob"])
    known = read_set(tmp_path / "decode")
    x = np.arange(8, dtype=np.float32).reshape(1, 8) - 4
    given = x
    for image in images:
        ((code, (raw,)),) = loaded(image, known, [[given]], [x.nbytes])
        assert code == 0
        given = np.frombuffer(raw, np.float32).reshape(1, 8)
    assert given[0].tolist() == (WEIGHTS @ np.maximum(x[0], 0)).tolist()


@needs_host
def test_both_run_in_one_arena(path: Path, tmp_path: Path) -> None:
    files, includes = [], []
    for name in ("encode", "decode"):
        made = tmp_path / name
        settings = Settings(name=name, signature=name, external_arena=True, output=made)
        firmware.build(path, "mps2-an386", settings)
        files += [made / f"{name}_{part}.c" for part in ("model", "kernels", "weights")]
        includes.append(f"-I{made}")
    main = tmp_path / "main.c"
    main.write_text(PROGRAM, encoding="utf-8")
    program = tmp_path / "program"
    command = ["cc", "-std=c11", "-Wall", "-Werror", *includes, "-o", program, main, *files, "-lm"]
    subprocess.run([str(word) for word in command], check=True)
    said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    x = np.maximum(np.arange(8, dtype=np.float32) - 4, 0)
    assert [float(word) for word in said.split()] == (WEIGHTS @ x).tolist()
