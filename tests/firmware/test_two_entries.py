"""Two signatures of a file in one program, whose projects share an arena that the caller passes."""

import subprocess
from pathlib import Path

import numpy as np

from tests.conformance.writer import Node, Subgraph, T, tflite
from tests.firmware.projects import needs_host
from tvm_serenity import firmware
from tvm_serenity.firmware import Settings

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


@needs_host
def test_both_run_in_one_arena(tmp_path: Path) -> None:
    shape = (1, 8)
    weights = np.random.default_rng(0).integers(-2, 3, (8, 8)).astype(np.float32)
    stored = T((8, 8), "float32", data=weights, name="w")
    ends = [T(shape, "float32", name=name) for name in ("x", "y")]
    dense = [Node("FULLY_CONNECTED", [0, 2, -1], [1])]
    decode = Subgraph([*ends, stored], dense, [0], [1], "decode")
    path = tmp_path / "two.tflite"
    path.write_bytes(tflite(ends, [Node("RELU", [0], [1])], [0], [1], [decode], "encode"))
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
    assert [float(word) for word in said.split()] == (weights @ x).tolist()
