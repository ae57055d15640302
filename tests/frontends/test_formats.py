"""One record for each file format: every command and entry point goes by it."""

import ast
import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flatbuffers")
pytest.importorskip("onnx")
pytest.importorskip("tvm")

from tests.cli.run import serenity
from tests.frontends.models import shared, small_tflite
from tests.frontends.programs import program
from tvm_serenity import compat, firmware, frontends
from tvm_serenity.errors import InputError, SerenityError, UnsupportedError
from tvm_serenity.firmware import Settings
from tvm_serenity.frontends import format_at, format_of, formats, load
from tvm_serenity.frontends.formats import all_formats
from tvm_serenity.frontends.formats.record import Format
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.frontends.text_file import TextFile
from tvm_serenity.graph import text
from tvm_serenity.nas import objective
from tvm_serenity.validation.network import reference_for
from tvm_serenity.validation.references import runtime_for

ROOT = Path(frontends.__file__).parents[1]
DENSE = "mlperf_tiny/ad01_int8.tflite"
TEXT = "input x[8]i8\na RELU: x -> y[8]i8\noutput y\n"
RUNTIMES = {"tflite": "litert", "onnx": "onnxruntime", "pte": "", "pt2": "torch", "text": ""}


def onnx_model() -> bytes:
    """Two layers."""
    import onnx
    from onnx import TensorProto, helper

    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8]) for name in ("x", "y"))
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Neg", ["r"], ["y"])]
    graph = helper.make_graph(nodes, "net", [x], [y])
    opset = [helper.make_opsetid("", 17)]
    made: bytes = helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    assert onnx.load_model_from_string(made).graph.node
    return made


def torch_program(path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Network(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return -torch.relu(x)

    exported = torch.export.export(Network().eval(), (torch.zeros(1, 8),))
    torch.export.save(exported, path)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model of each format, by its name."""
    folder = tmp_path_factory.mktemp("formats")
    made = {form.name: folder / f"net{form.suffixes[0]}" for form in all_formats()}
    made["tflite"].write_bytes(small_tflite())
    made["onnx"].write_bytes(onnx_model())
    made["pte"].write_bytes(program())
    made["text"].write_text(TEXT)
    torch_program(made["pt2"])
    return made


def test_a_model_names_its_format_and_the_records_do_not_overlap(files: dict[str, Path]) -> None:
    every = [suffix for form in all_formats() for suffix in form.suffixes]
    assert len(set(every)) == len(every)
    assert {form.name for form in all_formats()} == set(files) == set(RUNTIMES)
    for name, path in files.items():
        form = format_at(path)
        assert form is not None
        assert format_of(load(path)) is form
        assert form.name == name
        assert form.runtime == RUNTIMES[name]
        head = path.read_bytes()[:16]
        others = [one.name for one in all_formats() if one.begins(head)]
        assert others == ([name] if form.magic else [])


def test_another_formats_content_is_named(files: dict[str, Path], tmp_path: Path) -> None:
    for name, path in files.items():
        form = format_at(path)
        assert form is not None
        if form.magic is None:
            continue
        for other in (*(f.suffixes[0] for f in all_formats() if f is not form), ".bin", ".h5"):
            wrong = tmp_path / f"{name}{other}"
            wrong.write_bytes(path.read_bytes())
            with pytest.raises(InputError, match=f"rename it to end in .{name}"):
                load(wrong)


def test_formats_without_sizes_refuse_them_by_name(files: dict[str, Path]) -> None:
    refused = {form.name for form in all_formats() if form.no_sizes}
    assert refused == {"pte", "pt2", "text"}
    for name in refused:
        form, done = format_at(files[name]), serenity("inspect", files[name], "--dim", "N=1")
        assert form is not None
        assert done.returncode == 2
        assert f"{files[name].name}: {form.no_sizes}" in " ".join(done.stderr.split())


COMMANDS = ("schedule", "inspect", "explain", "rewrite", "offchip", "rows", "compile", "build")
NOT_COMPILED = ("pte", "text")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_every_format_or_says_what_to_do(
    command: str, files: dict[str, Path], tmp_path: Path
) -> None:
    more = {"build": ("--board", "mps2-an386", "-o", str(tmp_path / "out"), "--force")}
    taken = []
    for name, path in files.items():
        if command in ("compile", "build") and name not in NOT_COMPILED:
            continue  # these take seconds, and have tests of their own
        done = serenity(command, path, *more.get(command, ()))
        assert done.returncode in (0, 2), (name, done.stderr)
        if done.returncode == 0:
            taken.append(name)
            continue
        *_, said = done.stderr.strip().splitlines()
        assert str(path) in said
        assert "Traceback" not in done.stderr
    if command in ("schedule", "inspect", "explain", "offchip"):
        assert taken == list(files)
    assert not (tmp_path / "out").exists()


def test_only_written_formats_are_written_and_under_their_own_name(
    files: dict[str, Path], tmp_path: Path
) -> None:
    for name, path in files.items():
        form = format_at(path)
        assert form is not None
        done = serenity("schedule", path, "-o", tmp_path / f"out{path.suffix}")
        assert (done.returncode == 0) == form.written, done.stderr
        assert (tmp_path / f"out{path.suffix}").exists() == form.written
        if form.written:
            assert form.after_order.split(":")[0] in " ".join(done.stdout.split())
        other = ".onnx" if name != "onnx" else ".tflite"
        done = serenity("schedule", path, "-o", tmp_path / f"other{other}")
        assert done.returncode == 2
        assert f"name a {path.suffix}" in done.stderr


def test_what_is_not_written_is_refused_before_the_search(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tvm_serenity.commands import schedule

    def searched(*_: object, **__: object) -> None:
        raise AssertionError("the search began")

    monkeypatch.setattr(schedule, "schedule_for_arena", searched)
    monkeypatch.setattr(schedule, "schedule", searched, raising=False)
    for name in ("pte", "pt2"):
        done = serenity("schedule", files[name], "-o", tmp_path / files[name].name)
        assert done.returncode == 2
        assert "export" in done.stderr


def test_relax_takes_a_path_and_what_was_read_and_refuses_by_name(files: dict[str, Path]) -> None:
    for name, path in files.items():
        if name in NOT_COMPILED:
            for source in (path, load(path)):
                with pytest.raises(SerenityError, match=f"{path.name}.*compiled"):
                    to_relax(source)
            continue
        of_path, of_file = (compat.structural_hash(to_relax(one)) for one in (path, load(path)))
        assert of_path == of_file


def test_operations_of_one_format_name_the_files_that_have_them(files: dict[str, Path]) -> None:
    onnx, out = str(files["onnx"]), "out.tflite"
    said = {
        ("rows", onnx, "--graph"): "--graph reads only .tflite files",
        ("interface", onnx, "-o", out): "interface reads and writes only .tflite files",
        ("interface", str(files["tflite"]), "-o", "out.onnx"): "only .tflite files",
        ("schedule", onnx, "--plan", "tflm"): "--plan tflm is for .tflite files",
        (
            "schedule",
            str(files["tflite"]),
            "--for",
            "onnxruntime-all",
            "-o",
            out,
        ): "--for onnxruntime-all writes only .onnx files",
    }
    for words, reason in said.items():
        done = serenity(*words)
        assert done.returncode == 2
        assert reason in " ".join(done.stderr.split())
    with pytest.raises(InputError, match=r"rows need the operators of \.tflite files"):
        raise _error(objective.measure(onnx, rows=True).rows_arena_bytes)


def _error(found: object) -> Exception:
    assert isinstance(found, Exception)
    return found


READS = (
    *(("schedule",), ("inspect",), ("explain",), ("rewrite",), ("offchip",), ("compile",)),
    ("build", "--board", "mps2-an386", "-o", "out"),
    ("fit", "--board", "mps2-an386", "--time-limit", "20"),
    ("report", "-o", "page.html"),
)


@pytest.mark.parametrize("words", READS, ids=[words[0] for words in READS])
def test_a_command_reads_its_model_once(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, count = shared(DENSE), []
    read = frontends._read

    def counted(where: Path) -> Any:
        count.append(where)
        return read(where)

    monkeypatch.setattr(frontends, "_read", counted)
    command, *more = words
    done = serenity(command, path, *more, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert count == [path]


def test_firmware_is_built_of_what_was_read(files: dict[str, Path]) -> None:
    from tvm_serenity.firmware.compile.model import opened

    settings = Settings(check=False)
    of_path = firmware.build(str(files["onnx"]), "mps2-an386", settings)
    of_file = firmware.build(load(files["onnx"]), "mps2-an386", settings)
    assert of_path.files == of_file.files
    with pytest.raises(SerenityError, match=r"net\.pte.*compiled"):
        firmware.build(load(files["pte"]), "mps2-an386", settings)
    told = load(files["tflite"])
    with pytest.raises(
        InputError, match=r"no operator, but Settings has opaque=npu=64; give both the same"
    ):
        opened(told, replace(settings, opaque={"npu": 64}))


def test_a_built_in_network_is_no_file() -> None:
    for entry in (load, to_relax, objective.peak_bytes):
        with pytest.raises(InputError, match=r"is not a file; .* tvm_serenity\.zoo\.build returns"):
            entry("zoo:swiftnet")


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Format:
    """A format of the test's own: the text form, which compiles to one kernel."""

    class ToyFile(TextFile):
        format = "toy"

        def check_operators(self, integers: bool = True) -> None:
            """All are known."""

    def read(path: Path, data: bytes, dims: Any) -> Any:
        return ToyFile(path, text.parse(data.decode().partition("\n")[2], path.name))

    def convert(model: Any, _dims: Any, _integers: Any) -> Any:
        from tvm import relax

        builder = relax.BlockBuilder()
        x = relax.Var("x", relax.TensorType([8], "int8"))
        with builder.function("main", [x]):
            with builder.dataflow():
                y = builder.emit_output(builder.emit(relax.op.nn.relu(x)))
            builder.emit_func_output(y)
        return builder.get()

    made = Format(
        name="toy",
        title="Toy",
        suffixes=(".toy",),
        magic=(0, b"TOY!"),
        read=read,
        to_relax=convert,
        after_order="toys run in the order of the file",
    )
    file = types.ModuleType(f"{formats.__name__}.toy")
    file.FORMAT = made  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, file.__name__, file)
    monkeypatch.setattr(formats, "MODULES", (*formats.MODULES, "toy"))
    return made


def test_a_format_is_its_record_alone(toy: Format, tmp_path: Path) -> None:
    path = tmp_path / "net.toy"
    path.write_text(f"TOY!\n{TEXT}")
    assert format_of(load(path)) is toy
    done = serenity("schedule", path, "-o", tmp_path / "out.toy")
    assert done.returncode == 0, done.stderr
    assert toy.after_order in " ".join(done.stdout.split())
    built = firmware.build(str(path), "mps2-an386", Settings(name="toy"))
    assert built.facts["fits"]
    assert reference_for(str(path)) is None
    with pytest.raises(InputError, match="files of this format have no reference runtime"):
        runtime_for(path, b"")
    (tmp_path / "net.unknown").write_text(TEXT)
    with pytest.raises(InputError, match=r"known model files end in .*\.graph, \.toy"):
        load(tmp_path / "net.unknown")
    path.rename(tmp_path / "net.txt")
    with pytest.raises(InputError, match=r"holds a model of Toy: rename it to end in \.toy"):
        load(tmp_path / "net.txt")


def test_a_format_that_cannot_compile_must_say_so(toy: Format, tmp_path: Path) -> None:
    path = tmp_path / "net.toy"
    path.write_text(f"TOY!\n{TEXT}")
    model = load(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[f"{formats.__name__}.toy"], "FORMAT", replace(toy, to_relax=None))
        with pytest.raises(
            UnsupportedError, match="a Toy file has no operators that can be compiled"
        ):
            to_relax(model)


READER_CLASSES = {"TfliteFile", "OnnxFile", "PteFile", "ProgramFile", "TextFile"}


def test_no_other_file_tells_formats_by_suffix_or_class() -> None:
    """But for ``frontends.formats``, whose records say both."""
    suffixes = {suffix for form in all_formats() for suffix in form.suffixes}
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        if "formats" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare | ast.Dict | ast.Call | ast.Tuple):
                parts = list(ast.iter_child_nodes(node))
                texts = [p.value for p in parts if isinstance(p, ast.Constant)]
                found += [f"{path}:{node.lineno} {t}" for t in texts if t in suffixes]
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                found += [f"{path}:{node.lineno} {n}" for n in names & READER_CLASSES]
    assert not found
