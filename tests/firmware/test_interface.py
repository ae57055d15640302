"""What the header offers to an application that serves any model: numbers, real values, classes."""

import io
import shutil
import struct
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest

pytest.importorskip("tvm")

from tests.cases import only_exhaustive, sampled
from tests.conformance.builder import Net
from tests.conformance.quantise import integer_file
from tests.firmware.projects import MODELS, VWW, model, needs_board, needs_host
from tests.firmware.small import build as command
from tests.firmware.small import counting, windows
from tvm_serenity import firmware
from tvm_serenity.architectures import architecture
from tvm_serenity.errors import InputError
from tvm_serenity.firmware.board import image
from tvm_serenity.firmware.board.execute import emulated
from tvm_serenity.firmware.board.toolchain import make
from tvm_serenity.firmware.compile.labels import with_labels
from tvm_serenity.firmware.emit.buildfiles import COMMON
from tvm_serenity.firmware.emit.c import string
from tvm_serenity.firmware.emit.interface import by_number
from tvm_serenity.firmware.program import Bands, Program, Quantisation, Tensor
from tvm_serenity.firmware.result import Project, load
from tvm_serenity.frontends.tflite_labels import axis_labels
from tvm_serenity.frontends.tflite_metadata import write_metadata

PERSON = "tflm/person_detect.tflite"
APPLICATION = Path(__file__).with_name("application.c")


def real_values(stored: Any, about: dict[str, Any]) -> Any:
    if about["scale"] is None:
        return stored.astype(np.float32)
    return np.float32(about["scale"]) * (stored.astype(np.float32) - about["zero_point"])


def classified(found: Project, run: list[str]) -> tuple[int, str, float, bytes]:
    """What the application says of the reference's input, given as real values."""
    (given,), (stored,) = found.inputs, found.reference_inputs()
    real = real_values(stored, given)
    (found.folder / "real.bin").write_bytes(real.astype("<f4").tobytes())
    done = subprocess.run(
        run, cwd=found.folder, capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    index, label = (done.stdout + done.stderr).splitlines()
    (score,) = struct.unpack("<f", (found.folder / "score.bin").read_bytes())
    return int(index.removeprefix("index ")), label, score, (found.folder / "out.bin").read_bytes()


def check_class(found: Project, run: list[str], labels: list[str]) -> None:
    index, label, score, output = classified(found, run)
    wanted, about = found.reference["output0"], found.outputs[0]
    assert output == wanted.tobytes()
    assert index == int(np.argmax(wanted))
    assert label == labels[index]
    assert score == real_values(wanted.reshape(-1)[index], about)


@needs_board
@pytest.mark.parametrize(
    ("name", "labels"),
    [(VWW, ["nobody", "somebody"]), only_exhaustive((PERSON, ["person", "no person"]))],
)
def test_models_are_swapped_in_an_application_that_stays(
    name: str, labels: list[str], tmp_path: Path
) -> None:
    (tmp_path / "labels.txt").write_text("\n".join(labels) + "\n")
    settings = firmware.Settings(
        name="net", labels=tmp_path / "labels.txt", output=tmp_path / "made", check=False
    )
    firmware.build(model(name), "mps2-an386", settings)
    found = load(tmp_path / "made")
    assert "--labels labels.txt" in found.metadata["command"]
    shutil.copy(APPLICATION, found.folder / "main.c")
    make(found.folder, "build/firmware.elf")
    run = emulated(architecture("arm").toolchain.emulator, "mps2-an386")
    run += ["-kernel", "build/firmware.elf"]
    check_class(found, run, labels)


def classifier(seed: int, dtype: str, side: int, classes: int) -> bytes:
    """A drawn network of a convolution, a pool and a dense layer; "real": with floats outside."""
    net = Net(seed)
    y = net.conv(net.input(1, side, side, 3), 8, 3, stride=2, activation="RELU")
    y = net.reshape(net.pool("AVERAGE", y, side // 2, side // 2), 1, 8)
    net.output(net.softmax(net.dense(y, classes)))
    extents = dict.fromkeys(range(len(net.values)), (-3.0, 3.0))
    return integer_file(net, extents, "int8" if dtype == "real" else dtype, real=dtype == "real")


@needs_host
@pytest.mark.parametrize(
    "drawn", sampled([(0, "int8", 8, 3), (1, "uint8", 12, 10), (2, "real", 16, 4)], 2, tuples=True)
)
def test_drawn_networks_are_swapped_too(
    drawn: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the host: other sizes, types and numbers of classes, by the same source."""
    monkeypatch.setattr(image, "linkable", lambda _family: False)
    labels = [f"class {i}" for i in range(drawn[-1])]
    (tmp_path / "labels.txt").write_text("\n".join(labels))
    (tmp_path / "drawn.tflite").write_bytes(classifier(*drawn))
    settings = firmware.Settings(
        name="net", labels=tmp_path / "labels.txt", output=tmp_path / "made", check=False
    )
    firmware.build(tmp_path / "drawn.tflite", "mps2-an386", settings)
    found = load(tmp_path / "made")
    shutil.copy(APPLICATION, found.folder / "app.c")
    names = ["app.c", "port_host.c", "net_model.c", "net_kernels.c", "net_weights.c"]
    words = ["cc", *COMMON.split(), *names, "-lm", "-o", "app"]
    subprocess.run(words, cwd=found.folder, check=True)
    check_class(found, ["./app"], labels)


def net(*edges: Tensor) -> Program:
    """A program of inputs that are its outputs."""
    numbers = tuple(range(len(edges)))
    bands = tuple(Bands.unsplit("sram", 0) for _ in edges)
    return Program("net", (), (), edges, bands, (), numbers, numbers, {"sram": 64})


STORED = [
    Tensor("a", (4,), "int8", Quantisation(0.5, -3)),
    Tensor("b", (4,), "uint8", Quantisation(0.02, 128)),
    Tensor("c", (4,), "int16", Quantisation(0.001, 0)),
    Tensor("d", (4,), "int32", Quantisation(0.001, 7)),
    Tensor("e", (4,), "int64", Quantisation(0.25, 1)),
    Tensor("f", (4,), "float32"),
    Tensor("g", (4,), "bool"),
    Tensor("h", (4,), "int32"),
]
VALUES = [0.0, 0.24, 0.25, -0.25, 0.75, -1.25, 63.9, -70.0, 1e30, -1e30]


def wanted(tensor: Tensor, values: list[float]) -> list[float]:
    """Real values as LiteRT stores them: halves away from 0, within the type."""
    if tensor.quantisation is None:
        return [float(np.array(v, np.float32).astype(tensor.dtype)) for v in values]
    about, q = np.iinfo(tensor.dtype), tensor.quantisation
    wide = np.float32 if about.bits <= 16 else np.float64
    exact = [wide(np.float32(v)) / wide(np.float32(q.scale)) for v in values]
    whole = [int(np.sign(x) * np.floor(abs(x) + wide(0.5))) + q.zero_point for x in exact]
    top = about.max if about.bits < 64 else about.max - 1023
    return [float(min(max(n, about.min), top)) for n in whole]


@needs_host
def test_real_values_are_stored_and_read_back(tmp_path: Path) -> None:
    program = net(*STORED)
    plain = [v for v in VALUES if abs(v) < 1e6]  # C leaves the others open where nothing limits
    lines, expected = [], []
    for i, tensor in enumerate(STORED):
        values = plain if tensor.quantisation is None else VALUES
        stored, real = by_number.stored(program, i), by_number.real(program, i)
        for v in values:
            element = f"{stored}({v:.6e}f)"
            shown = f"(double){element}, (double){real}({element})"
            lines.append(f'    printf("%.17g %.9g\\n", {shown});')
        for n in wanted(tensor, values):
            q = tensor.quantisation
            scale, zero = (1.0, 0) if q is None else (float(np.float32(q.scale)), q.zero_point)
            expected.append((n, np.float32(scale * (n - zero))))
    code = "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include <stdio.h>\n"
    for tensor in STORED:
        if tensor.quantisation is not None:
            name, q = tensor.name.upper(), tensor.quantisation
            for role in ("INPUT", "OUTPUT"):
                code += f"#define NET_{role}_{name}_SCALE {q.scale!r}f\n"
                code += f"#define NET_{role}_{name}_ZERO_POINT ({q.zero_point})\n"
    code += by_number.interface(program)
    code += "int main(void)\n{\n" + "\n".join(lines)
    code += '\n    printf("%d %d\\n", net_in_0_stored(NAN), NET_IN_COUNT);\n    return 0;\n}\n'
    (tmp_path / "it.c").write_text(code)
    words = ["cc", *COMMON.split(), "-fsanitize=undefined", "-fno-sanitize-recover=all"]
    made = subprocess.run(
        [*words, "it.c", "-lm", "-o", "it"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    said = subprocess.run([tmp_path / "it"], capture_output=True, text=True, check=True).stdout
    *pairs, last = ([float(v) for v in line.split()] for line in said.splitlines())
    assert [p[0] for p in pairs] == [e[0] for e in expected]
    np.testing.assert_allclose([p[1] for p in pairs], [e[1] for e in expected], rtol=1e-6)
    assert last == [-128, len(STORED)]  # what is no number is the least


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.txt"
    path.write_text("\n".join(f"class {i}" for i in range(8)) + "\n\n")
    return path


def test_a_label_file_reaches_the_table(
    labels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command(monkeypatch, counting(), tmp_path, "--no-check", "--format", "sources") == 0
    plain = (tmp_path / "made" / "net_model.c").read_text()
    assert '{best, "", net_out_0_real(scores[best])}' in plain
    module = with_labels(counting(), None, labels)
    assert module["main"].attrs["serenity.labels"][0][7] == "class 7"


@pytest.mark.parametrize(
    ("network", "text", "said"),
    [
        (counting, "one\ntwo\n", " has shape (1, 8): --labels {path} must be one label"),
        (windows, "one\n", "must be one label for each element of a vector, and there are 1"),
        (counting, None, "--labels {path}: cannot be read (No such file or directory)"),
        (counting, b"\xff", "--labels {path}: cannot be read ('utf-8' codec"),
    ],
)
def test_labels_that_do_not_fit_are_refused(
    network: Any, text: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "linkable", lambda _family: False)
    path = tmp_path / "given.txt"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    settings = firmware.Settings(check=False, labels=path)
    with pytest.raises(InputError) as caught:
        firmware.build(network(), "mps2-an386", settings)
    assert said.format(path=path) in str(caught.value)


def about_labels(files: list[tuple[str, int, str]]) -> bytes:
    """The metadata of a model whose only output has these files: name, type and locale."""
    made = flatbuffers.Builder(0)

    def vector(items: list[int]) -> int:
        made.StartVector(4, len(items), 4)
        for item in reversed(items):
            made.PrependUOffsetTRelative(item)
        return int(made.EndVector())

    def table(fields: dict[int, int]) -> int:
        made.StartObject(9)
        for number, value in fields.items():
            made.PrependUOffsetTRelativeSlot(number, value, 0)
        return int(made.EndObject())

    tables = []
    for name, kind, locale in files:
        texts = made.CreateString(name), made.CreateString(locale)
        made.StartObject(5)
        made.PrependUOffsetTRelativeSlot(0, texts[0], 0)
        made.PrependInt8Slot(2, kind, 0)
        made.PrependUOffsetTRelativeSlot(3, texts[1], 0)
        tables.append(int(made.EndObject()))
    output = table({6: vector(tables)})
    subgraph = table({3: vector([output])})
    made.Finish(table({3: vector([subgraph])}), file_identifier=b"M001")
    return bytes(made.Output())


def with_archive(data: bytes, packed: dict[str, str]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, text in packed.items():
            archive.writestr(name, text)
    return data + held.getvalue()


def test_labels_in_the_metadata_of_a_model() -> None:
    from tests.docs.test_snippets import small_network

    files = [("de.txt", 2, "de"), ("other.txt", 1, ""), ("plain.txt", 2, "")]
    about = write_metadata(small_network(), "TFLITE_METADATA", about_labels(files))
    texts = {"de.txt": "Katze\nHund", "other.txt": "x", "plain.txt": "cat\ndog\n"}
    assert axis_labels(with_archive(about, texts), "m") == [("cat", "dog")]
    assert axis_labels(small_network(), "m") == []
    with pytest.raises(InputError, match=r"m: label file 'plain.txt' .*--labels FILE"):
        axis_labels(with_archive(about, {"de.txt": "Katze"}), "m")
    broken = write_metadata(small_network(), "TFLITE_METADATA", about_labels(files)[:40])
    with pytest.raises(InputError, match=r"m: metadata TFLITE_METADATA: .*--labels FILE"):
        axis_labels(broken, "m")


def test_labels_of_a_shared_model() -> None:
    path = MODELS / "misc" / "mobilenet_v1_0.25_128_quant.tflite"
    if not path.is_file():
        pytest.skip(f"the shared data is not at {path}")
    (labels,) = axis_labels(path.read_bytes(), "m")
    assert (len(labels), labels[0], labels[-1]) == (
        1001,
        "background",
        "toilet tissue, toilet paper, bathroom tissue",
    )


@needs_host
def test_text_survives_as_c(tmp_path: Path) -> None:
    text = 'a "b" \\ ??/ käse 猫 1\n'
    (tmp_path / "it.c").write_text(
        f"#include <stdio.h>\nint main(void) {{ fputs({string(text)}, stdout); return 0; }}\n"
    )
    subprocess.run(["cc", "-std=c11", "-o", "it", "it.c"], cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "it"], capture_output=True, check=True).stdout
    assert said == text.encode()
