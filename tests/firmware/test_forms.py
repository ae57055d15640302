"""Forms of a program as their users take them: beside another, as MLF, as an Arduino library."""

import io
import json
import re
import subprocess
import tarfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm

from tests.cases import sampled
from tests.firmware.projects import needs_host
from tests.firmware.small import counting, windows
from tvm_serenity import firmware
from tvm_serenity.firmware.board import image
from tvm_serenity.firmware.board.toolchain import have
from tvm_serenity.firmware.emit.buildfiles import COMMON
from tvm_serenity.firmware.result import Project

ROWS = {"rows": 2, "time_limit_s": 0.2}
STREAMED = {**ROWS, "stream_input": True}


@pytest.fixture(autouse=True)
def _for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "linkable", lambda _family: False)


def build(network: Any, name: str, **options: Any) -> Project:
    settings = firmware.Settings(name=name, check=False, **options)
    return firmware.build(network, "mps2-an386", settings)


def expected_of(project: Project) -> list[int]:
    """The elements of the first output, as the reference has them."""
    return [int(v) for v in project.reference["output0"].reshape(-1)]


def compiled(directory: Path, *sources: str, compiler: str = "gcc", flags: str = COMMON) -> str:
    """Compile sources in ``directory``, run what comes out; return what it prints."""
    command = [compiler, *flags.split(), f"-I{directory}", *sources, "-lm", "-o", "it"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ran = subprocess.run([directory / "it"], cwd=directory, capture_output=True, check=True)
    return ran.stdout.decode()


def written(files: dict[str, bytes], directory: Path) -> None:
    for name, data in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


TWO = """
#include "first_model.h"
#include "second_model.h"
#include <stdio.h>
#include <string.h>
static const int8_t x[FIRST_INPUT_X_ELEMENTS] = {%s};
int main(void)
{
    int8_t y[FIRST_OUTPUT_%s_ELEMENTS];
    const first_inputs inputs = {x};
    const first_outputs outputs = {y};
    for (uint32_t row = 0; row < SECOND_INPUT_X_ROWS; ++row) {
        (void)second_feed_row(x + row * SECOND_INPUT_X_ROW_BYTES);
        (void)first_run(&inputs, &outputs);
    }
    printf("%%d\\n", memcmp(y, second_output_%s(), sizeof y));
    for (uint32_t i = 0; i < sizeof y; ++i) {
        printf("%%d ", y[i]);
    }
    return 0;
}
"""


@needs_host
def test_two_models_in_one_program(tmp_path: Path) -> None:
    """The same network whole, and by rows as they arrive, each run between rows of the other."""
    first = build(windows(), "first")
    second = build(windows(), "second", **STREAMED)
    written({**second.files, **first.files}, tmp_path)
    x, y = first.reference_inputs()[0], first.outputs[0]["name"]
    text = TWO % (", ".join(map(str, x.reshape(-1))), y.upper(), y)
    (tmp_path / "two.c").write_text(text)
    sources = [
        f"{n}_{part}.c" for n in ("first", "second") for part in ("model", "kernels", "weights")
    ]
    same, values = compiled(tmp_path, "two.c", *sources).splitlines()
    assert same == "0"
    assert [int(v) for v in values.split()] == expected_of(first)


@needs_host
@pytest.mark.parametrize("options", [{}, STREAMED, {**STREAMED, "external_arena": True}])
def test_all_names_begin_with_the_model_s(options: dict[str, Any], tmp_path: Path) -> None:
    found = build(windows(), "mine", **options)
    header = found.files["mine_model.h"].decode()
    assert re.findall(r"#define (?!MINE_)\w+", header) == []
    written(dict(found.files), tmp_path)
    for part in ("model", "kernels", "weights"):
        command = ["gcc", "-c", f"mine_{part}.c", "-o", f"{part}.o"]
        subprocess.run(command, cwd=tmp_path, check=True)
        listed = subprocess.run(
            ["nm", "-g", "--defined-only", f"{part}.o"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        names = [line.split()[-1] for line in listed.splitlines()]
        assert names
        assert all(name.startswith("mine_") for name in names)


def test_inputs_and_outputs_are_called_as_in_the_model() -> None:
    found = build(counting(), "net")
    assert [t["name"] for t in found.inputs] == ["x", "state"]
    assert found.outputs[1]["name"] == "state_next"
    header = found.files["net_model.h"].decode()
    assert "int32_t *net_input_x(void);" in header
    assert "int32_t *net_output_state_next(void);" in header
    assert "#define NET_INPUT_STATE_INITIAL (0)" in header


USE = """
#include "tvmgen_net.h"
#include <stdio.h>
static int8_t x[] = {%s};
int main(void)
{
    int8_t y[%d] = {0};
    struct tvmgen_net_inputs inputs = {x};
    struct tvmgen_net_outputs outputs = {y};
    if (tvmgen_net_run(&inputs, &outputs) != 0) {
        return 1;
    }
    for (uint32_t i = 0; i < sizeof y; ++i) {
        printf("%%d ", y[i]);
    }
    return 0;
}
"""


@needs_host
@pytest.mark.parametrize("options", [{}, ROWS, STREAMED])
def test_mlf_is_read_by_tvm_and_runs(options: dict[str, Any], tmp_path: Path) -> None:
    expected = build(windows(), "net")
    found = build(windows(), "net", format="mlf", **options)
    with tarfile.open(fileobj=io.BytesIO(found.files["net.tar"])) as tar:
        tar.extractall(tmp_path, filter="data")
    about = json.loads((tmp_path / "metadata.json").read_text())
    assert about["version"] == 7
    module = about["modules"]["net"]
    (main,) = module["memory"]["functions"]["main"]
    assert main["inputs"] == {"x": {"size": 192, "dtype": "int8"}}
    assert module["executors"] == ["aot"]
    params = tvm.runtime.load_param_dict((tmp_path / "parameters" / "net.params").read_bytes())
    assert sum(array.numpy().nbytes for array in params.values()) == main["constants_size_bytes"]
    x, size = expected.reference_inputs()[0], expected.outputs[0]["size_bytes"]
    code = tmp_path / "codegen" / "host"
    (code / "src" / "use.c").write_text(USE % (", ".join(map(str, x.reshape(-1))), size))
    sources = [path.name for path in (code / "src").glob("*.c")]
    said = compiled(code / "src", *sources, flags=f"{COMMON} -I{code / 'include'}")
    assert [int(v) for v in said.split()] == expected_of(expected)


ARDUINO = """
#include <cstdint>
#include <cstdio>
struct { void begin(long) {} void print(const char *s) { std::fputs(s, stdout); }
         void println(const char *s) { std::puts(s); }
         void println(float v) { std::printf("%g\\n", v); }
         void print(uint32_t i) { std::printf("%u", i); } } Serial;
static void delay(int) {}
#include SKETCH
int main()
{
    setup();
    loop();
#ifdef NET_CLASSES
    int best = 0;
    for (int i = 0; i < ELEMENTS; ++i) {
        best = OUTPUT()[i] > OUTPUT()[best] ? i : best;
    }
    std::printf("class %d \\n", best);
#else
    std::printf("%g\\n", NET_OUT_0_SCALE * (OUTPUT()[0] - NET_OUT_0_ZERO_POINT));
#endif
    return 0;
}
"""


@needs_host
@pytest.mark.skipif(not have("g++"), reason="apt-get install g++")
@pytest.mark.parametrize(
    ("network", "options"), [(windows, {}), (windows, STREAMED), (counting, {})]
)
def test_the_arduino_sketch_prints_the_result(
    network: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    found = build(network(), "net", format="arduino", **options)
    written(dict(found.files), tmp_path)
    properties = dict(
        line.split("=", 1) for line in (tmp_path / "library.properties").read_text().splitlines()
    )
    assert set(properties) >= {
        *("name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url"),
        *("architectures", "includes"),
    }
    assert all(properties.values())
    assert properties["url"].startswith("https://")
    assert (tmp_path / "src" / properties["includes"]).is_file()
    for part in ("model", "kernels", "weights"):
        command = ["gcc", *COMMON.split(), "-c", f"src/net_{part}.c", "-o", f"{part}.o"]
        subprocess.run(command, cwd=tmp_path, check=True)
    (tmp_path / "board.cpp").write_text(ARDUINO)
    sketch = tmp_path / "examples" / "net" / "net.ino"
    out = found.outputs[0]
    flags = f'-std=gnu++17 -Wall -Wextra -Werror -Isrc -DSKETCH="{sketch}"'
    flags += f" -DOUTPUT=net_output_{out['name']} -DELEMENTS={int(np.prod(out['shape']))}"
    objects = ("model.o", "kernels.o", "weights.o")
    said = compiled(tmp_path, "board.cpp", *objects, compiler="g++", flags=flags).splitlines()
    assert said[0] == said[1]
    assert ("class" in said[0]) == (network is counting)  # the other output is a feature map


TRAPS = "-std=gnu11 -O1 -w -fsanitize=undefined -fsanitize-trap=all -DSERENITY_TRACE"
STOPS = "-std=gnu11 -O1 -w -fsanitize=undefined,address -fno-sanitize-recover=all -DSERENITY_TRACE"


@needs_host
@pytest.mark.parametrize(
    ("options", "compiler"),
    sampled(product([{}, ROWS, {**STREAMED, "external_arena": True}], ["gcc", "clang"]), 4),
)
def test_no_behaviour_is_undefined(compiler: str, options: dict[str, Any], tmp_path: Path) -> None:
    if not have(compiler):
        pytest.skip(f"apt-get install {compiler}")
    found = build(windows(), "net", **options)
    written(dict(found.files), tmp_path)
    (tmp_path / "input0.bin").write_bytes(found.reference_inputs()[0].tobytes())
    sources = ("harness.c", "port_host.c", "net_model.c", "net_kernels.c", "net_weights.c")
    said = compiled(
        tmp_path, *sources, compiler=compiler, flags=TRAPS if compiler == "clang" else STOPS
    )
    assert "status 0" in said
    wanted = expected_of(found)
    got = np.frombuffer((tmp_path / "results.bin").read_bytes()[-len(wanted) :], np.int8)
    assert got.tolist() == wanted
