"""The C of the guide to firmware, compiled against the network that its names are of."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import blocks
from tests.docs.running import run_python, run_shell
from tests.docs.test_snippets import small_network
from tests.firmware.projects import needs_board, needs_host
from tvm_serenity import firmware
from tvm_serenity.firmware.board import image
from tvm_serenity.firmware.emit.buildfiles import COMMON

PAGE = "docs/how-to/firmware.md"
BEFORE = '#include "kws_model.h"\nvoid show(const int8_t *scores);\nvoid row_is_there(int which);\n'


@needs_host
@pytest.mark.parametrize(
    ("number", "before", "options"),
    [(0, "", {}), (1, BEFORE, {"rows": 4, "stream_input": True, "time_limit_s": 0.2})],
)
def test_what_is_shown_compiles(
    number: int,
    before: str,
    options: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("tflite")
    monkeypatch.setattr(image, "linkable", lambda _family: False)
    (tmp_path / "kws.tflite").write_bytes(small_network(classifier=number == 0))
    settings = firmware.Settings(check=False, format="zephyr", **options)
    made = firmware.build(tmp_path / "kws.tflite", "mps2-an386", settings)
    (tmp_path / "kws_model.h").write_bytes(made.files["src/kws_model.h"])
    shown = [block.text for block in blocks(PAGE) if block.language == "c"]
    assert len(shown) == 3  # the last is a declaration
    (tmp_path / "shown.c").write_text(before + shown[number])
    command = ["cc", *COMMON.split(), "-c", "shown.c", "-o", "shown.o"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@needs_host
def test_a_loop_on_a_microphone_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop of the page on incremental inference, against a network of the same names."""
    pytest.importorskip("tflite")
    monkeypatch.setattr(image, "linkable", lambda _family: False)
    (tmp_path / "kws.tflite").write_bytes(small_network())
    settings = firmware.Settings(check=False, sliding=2)
    made = firmware.build(tmp_path / "kws.tflite", "mps2-an386", settings)
    header = made.files["kws_model.h"].decode()
    (shown,) = (b.text for b in blocks("docs/sliding.md") if b.language == "c")
    (tmp_path / "kws_model.h").write_text(header)
    (tmp_path / "shown.c").write_text(shown)
    command = ["cc", *COMMON.split(), "-c", "shown.c", "-o", "shown.o"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


HEARING = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
void listen(void);
static int hops, scores;
const int16_t *microphone(void)
{
    static int16_t sound[480];
    if (hops++ == 60) {
        exit(printf("%d", scores) < 0);
    }
    for (int i = 0; i < 480; i++) {
        sound[i] = (int16_t)((hops * 320 + i) * 7919 % 30000 - 15000);
    }
    return sound;
}
void heard(const int8_t *classes) { scores += classes != 0; }
int main(void) { listen(); }
"""


@needs_host
@needs_board
def test_ten_lines_from_microphone_to_class(tmp_path: Path, shared: Path) -> None:
    """The page, block by block with its two models; its loop has classes from the 49th row on."""
    pytest.importorskip("tflite")
    files = {"features": "audio_preprocessor_int8", "words": "micro_speech_quantized"}
    for name, file in files.items():
        shutil.copy(shared / f"models/tflm/{file}.tflite", tmp_path / f"{name}.tflite")
    shown, said = "", []
    for block in blocks("docs/how-to/keyword-spotting.md"):
        if block.language == "console":
            quick = " --time-limit 0.5 --no-check -o "  # other tests measure and compare
            said.append(run_shell(block.commands.replace(" -o ", quick), tmp_path))
        elif block.language == "python":
            share = float(run_python(block.text, tmp_path))
        else:
            shown += block.text
    assert said[-1].count("duty cycle") == 2
    assert 0.1 < share < 0.2
    (tmp_path / "shown.c").write_text(shown)
    (tmp_path / "main.c").write_text(HEARING)
    parts = [f"{n}/{n}_{part}.c" for n in files for part in ("model", "kernels", "weights")]
    command = ["cc", *COMMON.split(), *(f"-I{n}" for n in files), "shown.c", "main.c", *parts]
    command += ["-o", "hearing", "-lm"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    heard = subprocess.run([tmp_path / "hearing"], capture_output=True, text=True, check=True)
    assert heard.stdout == str(60 - 49 + 1)
    assert len(shown[shown.index("void listen") :].splitlines()) <= 10


def test_the_header_has_all_names_of_the_reference_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tflite")
    monkeypatch.setattr(image, "linkable", lambda _family: False)
    (tmp_path / "name.tflite").write_bytes(small_network(classifier=True))
    headers = ""
    unsplit = firmware.Settings(check=False, format="sources")
    for settings in (unsplit, replace(unsplit, rows=4, stream_input=True, time_limit_s=0.2)):
        made = firmware.build(tmp_path / "name.tflite", "mps2-an386", settings)
        headers += made.files["name_model.h"].decode()
    page = Path(__file__).parents[2] / "docs" / "reference" / "c-interface.md"
    cells = re.findall(r"^\| (`.*?) \|", page.read_text(), re.MULTILINE)
    text = " ".join(cells).replace("<REGION>", "SRAM").replace("DIM_a", "DIM_0")
    shown = re.findall(r"`(\w+)", re.sub(r"_(in|out)_i", r"_\1_0", text, flags=re.IGNORECASE))
    absent = [name for name in shown if not re.search(rf"\b{name}\b", headers)]
    assert len(shown) > 20
    # there is no state, and a row is no single element
    assert sorted(absent) == ["NAME_IN_0_INITIAL", "name_step"]
